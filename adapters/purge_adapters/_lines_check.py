"""What ``purge check`` says of a site of lines. Reads only."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from purge.adapter import NotChecked, Site, Statement
from purge.errors import PurgeError
from purge_adapters._files import folders
from purge_adapters._lines_grammar import Grammar
from purge_adapters._lines_records import LineFields, Transcript, entries_of
from purge_adapters._text_files import TextFiles
from purge_adapters._text_looks import surroundings


def check_lines(
    site: Site, files: TextFiles[Transcript], grammar: Grammar, fields: LineFields
) -> Iterator[Statement]:
    """Yield what is true of a site and every fault that would make a run go wrong."""
    kinds: Counter[str] = Counter()
    ids: Counter[str] = Counter()
    count = size = unlinked = 0
    around: set[Path] = set()
    try:
        for item in files.read():
            if isinstance(item, NotChecked):
                yield Statement(f"{item.where} is not looked at: {item.why}.", ok=False)
                continue
            count, size = count + 1, size + item.size
            around.add(item.path.parent)
            for entry in entries_of(item.note, grammar, fields):
                kinds[entry.span.kind] += 1
                ids.update([entry.id] if entry.named else [])
                unlinked += any(fields.parents.values()) and not entry.record.parents
            yield from _faults(item.note, item.shown, item.path)
        around.update(folders(site, files.patterns))
    except PurgeError as error:
        yield Statement(str(error), ok=False)
        return
    records = ", ".join(f"{number} {name}" for name, number in sorted(kinds.items()))
    yield Statement(
        f"{_number(count, 'file')}, {size} bytes, {_number(kinds.total(), 'record')}"
        f"{f' ({records})' if records else ''}, {ids.total()} with an id of their own."
    )
    if not count:
        yield Statement("No file is there. Is the path right?", ok=False)
    for name in grammar.kinds:
        if count and not kinds[name]:
            yield Statement(f"No record is of the kind '{name}'.")
    if fields.id and not fields.id.startswith("$") and kinds and not ids:
        yield Statement(f"No record has the field '{fields.id}' that 'id' names.", ok=False)
    doubled = sum(1 for times in ids.values() if times > 1)
    if doubled:
        yield Statement(
            f"{_number(doubled, 'id')} in more than one place; a request for one takes all of its "
            "places.",
            ok=False,
        )
    if unlinked:
        yield Statement(
            f"{_number(unlinked, 'record')} without a word of what they derive from; what they "
            "paraphrase cannot be ruled out."
        )
    yield from surroundings(around)


def _faults(text: Transcript, shown: str, path: Path) -> Iterator[Statement]:
    if text.lines.damaged:
        yield Statement(
            f"{shown} holds NUL characters as no text does: it may be damaged.", ok=False
        )
    elif not text.lines.faithful:
        yield Statement(
            f"{shown} is neither UTF-8 nor UTF-16: only ASCII phrases can be found in it.", ok=False
        )
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
        yield Statement(
            f"{shown} or its folder may not be written to: nothing can be removed from it.",
            ok=False,
        )


def _number(count: int, one: str) -> str:
    return f"{count} {one if count == 1 else f'{one}s'}"
