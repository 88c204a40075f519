"""The desktop's trash (freedesktop.org Trash specification 1.0), only read.

A deleted file lies under ``files/``; ``info/NAME.trashinfo`` says where it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

__all__ = ["system_trash"]


def system_trash(came_from_here: Callable[[Path], bool], root: Path) -> Iterator[Path]:
    """Yield the deleted files whose old place is one that the caller asks for.

    Args:
        came_from_here: whether an absolute path is of interest.
        root: the trash of the file system that it lies on is looked at besides the user's own.
    """
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local/share")
    homes = [(Path(data) / "Trash", Path("/"))]
    for place in (root, *root.parents):
        homes.append((place / f".Trash-{os.getuid()}", place))
        homes.append((place / ".Trash" / str(os.getuid()), place))
    for home, top in homes:
        for name, old in _entries(home / "info"):
            deleted = home / "files" / name
            was = top / old
            if deleted.is_dir() and not deleted.is_symlink():
                for base, _, names in os.walk(deleted):
                    for inner in sorted(names):
                        path = Path(base) / inner
                        if came_from_here(was / path.relative_to(deleted)):
                            yield path
            elif deleted.is_file() and not deleted.is_symlink() and came_from_here(was):
                yield deleted


def _entries(folder: Path) -> Iterator[tuple[str, Path]]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if not name.endswith(".trashinfo"):
            continue
        try:
            lines = (folder / name).read_bytes().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(b"Path="):
                yield (
                    name.removesuffix(".trashinfo"),
                    Path(os.fsdecode(unquote_to_bytes(line.removeprefix(b"Path=")))),
                )
                break
