"""Where the manifest is, and where its ledger is. Reads no more than that needs."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from purge.errors import ManifestFault, UsageFault
from purge.manifest.document import MAX_BYTES, Document, Place, YamlFault, read_document

NAME: Final = "purge.yaml"
VARIABLE: Final = "PURGE_MANIFEST"


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """What can be said of a manifest without checking it: enough to read its ledger."""

    manifest: Path
    name: str
    timezone: ZoneInfo
    ledger: Path
    key_file: Path
    keys: Path


def find_manifest(start: Path, environ: Mapping[str, str]) -> Path:
    """Return the manifest to use when none is named: ``$PURGE_MANIFEST``, or the nearest
    ``purge.yaml`` in ``start`` or a folder above it.

    One that lies in a folder above and belongs to someone else (neither us nor root) is not
    obeyed unless it is named: anyone can put a file into ``/tmp``.

    Raises:
        UsageFault: there is none.
    """
    named = environ.get(VARIABLE)
    if named:
        return start / named
    start = Path(os.path.abspath(start))
    for folder in (start, *start.parents):
        path = folder / NAME
        try:
            owner = path.stat().st_uid
        except OSError:
            continue
        if folder != start and owner not in (os.geteuid(), 0):
            raise UsageFault(
                f"{path} belongs to another user. If you trust it, name it: --manifest {path}"
            )
        return path
    raise UsageFault(
        f"There is no {NAME} in {start} or a folder above it. Name a manifest with --manifest FILE "
        f"or ${VARIABLE}. The README shows how to write one."
    )


def locate_ledger(path: Path, environ: Mapping[str, str]) -> LedgerPlace:
    """Return where the ledger of a manifest is, without checking its sites (and so without
    adapters, drivers and pydantic). For commands that only read the ledger.

    Raises:
        ManifestFault: the file cannot be read, or what it says of its ledger, its name or its
            time zone is wrong.
    """
    from purge.manifest.environment import fill_in

    real, document = open_document(path)
    wanted = {"name", "root", "timezone", "ledger"}
    root = document.root
    assert isinstance(root.value, dict)
    few = {key: node for key, node in root.value.items() if key in wanted}
    filled, missing, _ = fill_in(type(root)(few, root.place, root.keys), environ)
    raw = filled.plain()
    ledger = raw.get("ledger") or {}
    values = [raw.get("name"), raw.get("timezone")]
    if isinstance(ledger, dict):
        values += [ledger.get("path"), ledger.get("key_file")]
    else:
        values.append(False)
    if missing or any(not isinstance(value, str | None) for value in values):
        raise ManifestFault(f"{path} has faults; see 'purge check'.")
    name, timezone, own_path, own_key = values
    zone = time_zone(timezone or "UTC")
    if zone is None:
        raise ManifestFault(f"{path} has faults; see 'purge check'.")
    database, key_file, keys = ledger_paths(real, own_path, own_key)
    return LedgerPlace(real, name or real.parent.name or "purge", zone, database, key_file, keys)


def ledger_paths(manifest: Path, path: str | None, key_file: str | None) -> tuple[Path, Path, Path]:
    """Return the ledger, the key file and the database of wrapped keys of a manifest.

    A manifest that is not called ``purge.yaml`` has a folder of its own below ``.purge``: two
    manifests in one folder must not run each other's requests over their sites.
    """
    folder = manifest.parent / ".purge"
    if manifest.name != NAME:
        folder /= manifest.stem
    ledger = manifest.parent / path if path else folder / "ledger.db"
    key = manifest.parent / key_file if key_file else ledger.with_name(f"{ledger.stem}.key")
    return ledger, key, ledger.with_name(f"{ledger.stem}-keys.db")


def time_zone(name: str) -> ZoneInfo | None:
    """Return a time zone by its IANA name, or ``None`` where there is none of that name."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        # A name such as '../x' is a ValueError, a folder of zones ('Europe') an OSError.
        return None


def open_document(path: Path) -> tuple[Path, Document]:
    """Return the real path of a manifest and the document in it.

    Symbolic links are resolved, so that one manifest has one ledger however it is reached.

    Raises:
        ManifestFault: it cannot be read.
    """
    try:
        real = path.resolve(strict=True)
        data = _read(real)
        return real, read_document(data.decode("utf-8-sig"))
    except FileNotFoundError:
        raise ManifestFault(f"There is no manifest at {path}.") from None
    except IsADirectoryError:
        raise ManifestFault(f"{path} is a folder; name the file in it.") from None
    except PermissionError:
        raise ManifestFault(f"{path} cannot be read: permission denied.") from None
    except (OSError, RuntimeError) as error:
        # A loop of links is a RuntimeError before Python 3.13.
        reason = getattr(error, "strerror", None) or "its path cannot be followed"
        raise ManifestFault(f"{path} cannot be read: {reason}.") from None
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line = before.count(b"\n") + 1
        column = len(before) - before.rfind(b"\n")
        raise _unusable(path, Place(line, column), "The file is not UTF-8 text.") from None
    except YamlFault as fault:
        raise _unusable(path, fault.place, fault.sentence) from None


def _read(path: Path) -> bytes:
    # Opened so that a pipe without a writer does not block.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise IsADirectoryError(path)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ManifestFault(f"{path} is not a regular file.")
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ManifestFault(f"{path} is larger than {MAX_BYTES // 1024} KiB; is it a manifest?")
    return data


def _unusable(path: Path, place: Place, sentence: str) -> ManifestFault:
    line = f"{path}:{place.line}:{place.column}: {sentence}"
    return ManifestFault(f"{path} cannot be used: 1 fault.", (line,))
