"""Strings that came from the environment, which know how they were written."""

from __future__ import annotations


class Secret(str):
    """A string that was filled in from the environment. It prints as it stood in the manifest."""

    __slots__ = ("template",)
    template: str

    def __new__(cls, value: str, template: str) -> Secret:
        """Make one from what it says and how it stood in the manifest."""
        made = super().__new__(cls, value)
        made.template = template
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # str has one argument
        return str(self), self.template

    def __repr__(self) -> str:
        return repr(self.template)
