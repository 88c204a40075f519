"""Filling in ``${NAME}`` from the environment, in values and never in keys.

It is done after the YAML was read, so that a variable cannot add keys. There is no form with a
default: an unset variable has to stop a run, not send it to another store. Names are said, values
never.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from purge.manifest.document import Node
from purge.manifest.secret import Secret
from purge.shapes import Fault, Steps

_TOKEN: Final = re.compile(r"\$\$|\$\{([^}]*)\}?")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def fill_in(node: Node, environ: Mapping[str, str]) -> tuple[Node, list[Fault], Mapping[str, str]]:
    """Return the tree with every ``${NAME}`` replaced by a :class:`Secret` and every ``$$`` by
    ``$`` (any other ``$`` stays as it is: ``$id``); what is wrong; and the variables that were
    used.

    What cannot be filled in keeps its text and is in the list of faults.
    """
    filler = _Filler(environ)
    return filler.fill(node, ()), filler.faults, filler.used


class _Filler:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.faults: list[Fault] = []
        self.used: dict[str, str] = {}

    def fill(self, node: Node, path: Steps) -> Node:
        value: object = node.value
        if isinstance(value, dict):
            filled = {key: self.fill(inner, (*path, key)) for key, inner in value.items()}
            return Node(filled, node.place, node.keys)
        if isinstance(value, list):
            items = [self.fill(inner, (*path, index)) for index, inner in enumerate(value)]
            return Node(items, node.place)
        if isinstance(value, str) and "$" in value:
            return Node(self._expand(value, path), node.place)
        return node

    def _expand(self, text: str, path: Steps) -> str:
        has_variable = False

        def replace(found: re.Match[str]) -> str:
            nonlocal has_variable
            token, name = found[0], found[1]
            if token == "$$":
                return "$"
            has_variable = True
            sentence = self._refusal(token, name)
            if sentence:
                self.faults.append(Fault(path, sentence))
                return token
            self.used[name] = self._environ[name]
            return self._environ[name]

        filled = _TOKEN.sub(replace, text)
        return Secret(filled, text) if has_variable else filled

    def _refusal(self, token: str, name: str) -> str:
        if not token.endswith("}"):
            return "'${' is not closed; write '$${' for the characters themselves."
        if ":" in name or "-" in name:
            return (
                "A default (${NAME:-...}) is not offered: an unset variable has to stop the run, "
                "not send it to another store."
            )
        if not _NAME.fullmatch(name):
            return "What stands in '${}' must be the name of a variable."
        if name not in self._environ:
            return f"The environment variable {name} is not set."
        if not self._environ[name]:
            return f"The environment variable {name} is set but empty."
        if not _is_text(self._environ[name]):
            return f"The environment variable {name} is not UTF-8 text."
        return ""


def _is_text(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
