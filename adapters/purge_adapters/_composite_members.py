"""The members of a format of several kinds of files: their adapters, and who has which file.

Reads names of files only; the adapters are made when they are asked for, and closed together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, runtime_checkable

from purge.adapter import Adapter, NotChecked, ProblemCode, Site
from purge.errors import Permanent, StoreError
from purge_adapters._composite_format import FilesFormat, Member
from purge_adapters._files import footprint, os_problem, relative, walk

__all__ = ["Members"]


@runtime_checkable
class HasFiles(Protocol):
    """An adapter that can say which files it reads."""

    def own_files(self) -> Iterator[Path | NotChecked]:
        """Yield them, and what could not be listed."""
        ...


class Members:
    """The members of one site's format.

    Args:
        site: whose root the paths are relative to.
        paths: of the site, as the manifest has them.
        format: what it is made of.
    """

    def __init__(self, site: Site, paths: Sequence[str], format: FilesFormat) -> None:
        self.site = site
        self.paths = tuple(paths)
        self.all = format.read()
        self._made: dict[str, Adapter[Any]] = {}

    def close(self) -> None:
        """Close the adapters of all members."""
        while self._made:
            self._made.popitem()[1].close()

    def of(self, name: str) -> Adapter[Any]:
        """Return the adapter of a member. Raises as :meth:`called` does."""
        return self._adapter(self.called(name))

    def part(self, member: Member, part: str) -> str:
        """Return what tells a record from those of its id that other members have."""
        return part if len(self.all) == 1 else " ".join(filter(None, (member.name, part)))

    def patterns(self, member: Member) -> list[str]:
        """Return which files of the site a member has, as patterns of the manifest."""
        found: list[str] = []
        for path in self.paths:
            place = self.site.place(path)
            if place.is_file():
                if self._taker(path) is member:
                    found.append(path)
                continue
            within = "" if path in ("", ".") else f"{path.rstrip('/')}/"
            found += [f"{within}{own}" for own in member.paths]
        return found

    def _taker(self, path: str) -> Member | None:
        """Return the member whose patterns a file fits that the manifest names by itself."""
        name = PurePosixPath(path)
        for member in self.all:
            if any(name.match(own.removeprefix("**/")) for own in member.paths):
                return member
        return None

    def present(self) -> Iterator[tuple[Member, Adapter[Any]]]:
        """Yield the members of which something may be there.

        Raises:
            Refused: a path leaves the root.
            Permanent: nothing of the site is there, or a file is of no member or of two.
        """
        self._raise_if_gone()
        for path in self.paths:
            if self.site.place(path).is_file() and self._taker(path) is None:
                raise Permanent(
                    f"Site '{self.site.name}': no member of its format has files of that name. "
                    "Name the folder, or another format.",
                    problem=ProblemCode.UNSUPPORTED,
                )
        for member in self.all:
            if self._there(member):
                yield member, self._adapter(member)

    def _raise_if_gone(self) -> None:
        problem: StoreError | None = None
        for path, base in zip(self.paths, footprint(self.site, self.paths), strict=False):
            try:
                base.stat()
            except OSError as error:
                problem = problem or os_problem(error, path)
            else:
                return
        if problem is not None:
            raise problem

    def _there(self, member: Member) -> list[str]:
        patterns = self.patterns(member)
        return [one for one in patterns if any(map(os.path.lexists, footprint(self.site, [one])))]

    def _adapter(self, member: Member) -> Adapter[Any]:
        if member.name not in self._made:
            self._made[member.name] = member.make(self.site, self._there(member))
        return self._made[member.name]

    def owned(self) -> dict[Path, Member]:
        """Return every file of the members.

        Raises:
            Permanent: two members have one file.
        """
        owned: dict[Path, Member] = {}
        for member, adapter in self.present():
            for path in self.files_of(member, adapter):
                first = owned.setdefault(path, member)
                if first is not member:
                    raise Permanent(
                        f"Site '{self.site.name}': two members of its format ({first.name} and "
                        f"{member.name}) both have {relative(path, self.site)}. Narrow one's path.",
                        problem=ProblemCode.UNSUPPORTED,
                    )
        return owned

    def files_of(self, member: Member, adapter: Adapter[Any]) -> list[Path]:
        """Return the files that a member reads."""
        files: Iterable[Path | NotChecked]
        if isinstance(adapter, HasFiles):
            files = adapter.own_files()
        else:
            patterns = self._there(member)
            files = walk(self.site, patterns) if patterns else ()
        return [path for path in files if isinstance(path, Path)]

    def called(self, name: str) -> Member:
        """Return the member of a name.

        Raises:
            Permanent: there is none: the format was another one when the name was given.
        """
        found = next((member for member in self.all if member.name == name), None)
        if found is None:
            raise Permanent(
                "A record was found under another description of the format; look again.",
                problem=ProblemCode.UNSUPPORTED,
            )
        return found
