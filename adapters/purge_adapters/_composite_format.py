"""Formats that are made of several kinds of files: what their description says.

A format is a list of members, each an adapter with its own keys; a member's ``path`` is told from
the path of the site. Presets are written in the same language, and read by the same code. Nothing
is opened here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final

from purge.adapter import Action, Adapter, Site
from purge.shapes import ShapeFault, nearest, validate
from purge_adapters._presets import preset, preset_names

__all__ = ["FilesFormat", "Member", "check_format", "members_of"]

ADAPTERS: Final = {
    "json": "purge_adapters.json:JsonAdapter",
    "jsonl": "purge_adapters.jsonl:JsonlAdapter",
    "lines": "purge_adapters.lines:LinesAdapter",
    "markdown": "purge_adapters.markdown:MarkdownAdapter",
}
"""What a member can be. Strings, since adapters do not import each other."""
_KIND: Final = "files"
_OF_THE_SITE: Final = ("scope", "subject", "derived_from", "action")
_ACTIONS: Final = {"delete": Action.DELETE, "blank": Action.BLANK}


@dataclass(frozen=True)
class FilesFormat:
    """A format that has several kinds of files."""

    members: list[dict[str, Any]] = field(
        metadata={
            "description": "The kinds of files: for each its 'adapter' (json, jsonl, lines or "
            "markdown), its 'path' (a file or a glob, from the site's path; or a list), and the "
            "keys of that adapter. 'scope', 'subject' and 'derived_from' may say other fields "
            "than the site, and 'action' (delete or blank) another one; 'archived: true' where an "
            "application does not show them any more."
        }
    )
    others: str | list[str] = field(
        default="**",
        metadata={
            "description": "The further files that belong to the format: they are searched, never "
            "changed, and named where they hold what is looked for. Default: all below the path."
        },
    )

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("members: may not be empty.")
        self.read()

    def read(self) -> tuple[Member, ...]:
        """Return the members, checked.

        Raises:
            ValueError: with a sentence for the first that cannot be used.
        """
        found: list[Member] = []
        for at, raw in enumerate(self.members):
            member = _member(f"members[{at}]", raw)
            same = sum(other.adapter == member.adapter for other in found)
            found.append(replace(member, label=f"{member.adapter} {same + 1}" if same else ""))
        return tuple(found)

    @property
    def further(self) -> tuple[str, ...]:
        """The patterns of ``others``."""
        return (self.others,) if isinstance(self.others, str) else tuple(self.others)


@dataclass(frozen=True, slots=True)
class Member:
    """One kind of files of a format.

    Args:
        adapter: its name.
        paths: from the site's path; none: the site's path itself.
        keys: the adapter's own keys, without ``path``.
        site: what it says instead of the site.
        archived: an application does not show them any more.
    """

    adapter: str
    paths: tuple[str, ...]
    keys: Mapping[str, Any]
    site: Mapping[str, Any]
    archived: bool = False
    label: str = ""

    @property
    def name(self) -> str:
        """What tells it from the other members."""
        return self.label or self.adapter

    def make(self, site: Site, patterns: list[str]) -> Adapter[Any]:
        """Return its adapter, for these files of a site."""
        adapter = _load(self.adapter)
        settings: object = validate(adapter.Settings, {**self.keys, "path": patterns})
        return adapter(replace(site, **self.site), settings)


def _member(at: str, raw: Mapping[str, Any]) -> Member:
    keys = dict(raw)
    name = keys.pop("adapter", None)
    if not isinstance(name, str) or name not in ADAPTERS:
        hint = nearest(name, ADAPTERS) if isinstance(name, str) else ""
        raise ValueError(f"{at}.adapter: must be one of: {', '.join(sorted(ADAPTERS))}.{hint}")
    path = keys.pop("path", None)
    paths = [path] if isinstance(path, str) else path
    if not isinstance(paths, list) or not all(isinstance(one, str) and one for one in paths):
        raise ValueError(f"{at}.path: must be text or a list of texts.")
    if any(one.startswith("/") or ".." in one.split("/") for one in paths):
        raise ValueError(f"{at}.path: is told from the site's path and may not leave it.")
    if not paths:
        raise ValueError(f"{at}.path: may not be empty.")
    archived = keys.pop("archived", False)
    if not isinstance(archived, bool):
        raise ValueError(f"{at}.archived: must be true or false.")
    site: dict[str, Any] = {key: keys.pop(key) for key in _OF_THE_SITE if key in keys}
    if "action" in site:
        if site["action"] not in _ACTIONS:
            raise ValueError(f"{at}.action: must be one of: {', '.join(_ACTIONS)}.")
        site["action"] = _ACTIONS[site["action"]]
    for key, value in site.items():
        if key != "action" and not isinstance(value, str if key == "subject" else dict):
            raise ValueError(f"{at}.{key}: must be as it is on a site.")
    try:
        validate(
            _load(name).Settings, {**keys, "path": "x"}, ("adapter", "archived", *_OF_THE_SITE)
        )
    except ShapeFault as fault:
        raise ValueError(f"{at}.{fault}") from None
    return Member(name, tuple(paths), keys, site, archived)


def _load(name: str) -> type[Adapter[Any]]:
    module, _, kind = ADAPTERS[name].partition(":")
    found: type[Adapter[Any]] = getattr(import_module(module), kind)
    return found


def check_format(format: str | FilesFormat | None, others: Mapping[str, object]) -> None:
    """Say what is wrong with the key ``format`` of a site's settings.

    Args:
        format: what the key says.
        others: the keys that stand beside it and mean nothing then, with what they say.

    Raises:
        ValueError: with one sentence.
    """
    if format is None:
        return
    for key, value in others.items():
        if value:
            raise ValueError(f"{key}: 'format' says that already; leave one of them out.")
    members_of(format)


def members_of(format: str | FilesFormat) -> FilesFormat:
    """Return what a format is made of.

    Raises:
        ValueError: there is no preset of that name.
    """
    if not isinstance(format, str):
        return format
    known = sorted({*preset_names(_KIND), *preset_names("json")})
    if format not in known:
        hint = nearest(format, known) or f" Known: {', '.join(known)}."
        raise ValueError(f"format: there is no format '{format}'.{hint}")
    return validate(FilesFormat, preset(_KIND, format) or _only_json(format))


def _only_json(format: str) -> Mapping[str, Any]:
    """Return a format that has nothing but what the adapter for JSON knows of it."""
    description = preset("json", format) or {}
    paths = [f"**/{kind['path']}" for kind in description.get("files", ())]
    return {"members": [{"adapter": "json", "path": paths, "format": dict(description)}]}
