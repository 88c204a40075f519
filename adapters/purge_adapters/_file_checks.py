"""What ``purge check`` says of files of JSON records, whatever a record is. Only reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from purge.adapter import NotChecked, Site, Statement
from purge_adapters._file_looks import shared_files
from purge_adapters._files import holders, leases_work, relative, unseen_processes
from purge_adapters._git import enclosing_repositories

__all__ = ["around", "fault", "so_many", "writable"]


def fault(gap: NotChecked) -> Statement:
    """Say that something cannot be looked at."""
    return Statement(f"{gap.where}: {gap.why}.", ok=False)


def so_many(count: int, what: str) -> str:
    """Return a count with its noun."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def writable(site: Site, files: Sequence[Path], read_only: Iterable[str]) -> Iterator[Statement]:
    """Yield what keeps files from being written.

    Args:
        site: of the files.
        files: all of them.
        read_only: the places of those whose encoding or compression is not written.
    """
    for where in read_only:
        yield Statement(f"{where}: its encoding or compression is read, not written.", ok=False)
    for path in files:
        if not os.access(path, os.R_OK | os.W_OK):
            yield Statement(f"{relative(path, site)}: may not be written.", ok=False)
    for folder in sorted({path.parent for path in files}):
        if not os.access(folder, os.W_OK | os.X_OK):
            yield Statement(f"{relative(folder, site)}: no file may be made in it.", ok=False)
    held = sum(any(holder.writes for holder in holders([path])) for path in files)
    if held:
        yield Statement(
            f"Held open for writing by another process, so left alone: {so_many(held, 'file')}.",
            ok=False,
        )
    for gap in shared_files(files, site):
        yield fault(gap)


def around(site: Site, files: Sequence[Path]) -> Iterator[Statement]:
    """Yield what lies around the files and bears on what can be proved."""
    folders = sorted({path.parent for path in files})
    for store in enclosing_repositories(iter(folders)):
        work = store.parent if store.name == ".git" else store
        yield Statement(
            f"git repository {relative(work, site)}: its history is looked at, and what it keeps "
            "has no end date."
        )
    if unseen_processes() and not all(leases_work(folder) for folder in folders):
        yield Statement(
            "What other users' processes hold open cannot be seen here, so nothing can be "
            "confirmed. Run as a user who can see them.",
            ok=False,
        )
