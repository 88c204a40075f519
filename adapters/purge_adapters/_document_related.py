"""Reading of a site's files only what hangs on some records, so that long logs are not taken apart.

A line in which none of some words stands, as an id would stand there, has no link to them and is
no copy. Files of other kinds are read whole, once. Only reads.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator

from purge_adapters._document_files import DocumentFile, Unit
from purge_adapters._document_items import Item
from purge_adapters._document_links import Web
from purge_adapters._document_source import Source, items_of
from purge_adapters._format_model import FileKind, Format, Layout
from purge_adapters._json_fields import scalar
from purge_adapters._json_text import leaves

__all__ = ["Gathering"]


class Gathering:
    """Notes in a web what hangs on records, pass by pass.

    Args:
        source: the files.
        web: where it is noted.
        whole: the names of further files that are read whole.
    """

    def __init__(self, source: Source, web: Web, whole: Collection[str] = ()) -> None:
        self._source = source
        self._web = web
        self._whole = frozenset(whole)
        self._seen: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._first = True
        self._counted = _counted(source.format)

    def read(self, seeds: Iterable[str]) -> Iterator[tuple[DocumentFile, list[Item]]]:
        """Read what is related to ids that were not asked for before; note and yield it.

        Yields each file once more without records, when it was read to its end.
        """
        new = {*seeds} - self._seen
        if not new and not self._first:
            return
        self._seen |= new
        for file in self._source.documents():
            wanted: Callable[[Unit], bool] | None = None
            if self._is_sparse(file):
                wanted = _related(new)
            elif not self._first:
                continue
            file.limit = self._sizes.get(file.key)
            for found in items_of(file, self._source.fields, wanted=wanted):
                for item in found:
                    self._web.note(item)
                yield file, found
            self._sizes.setdefault(file.key, file.size if file.limit is None else file.limit)
            yield file, []
        self._first = False

    def _is_sparse(self, file: DocumentFile) -> bool:
        return (
            file.key not in self._whole
            and file.kind.layout is Layout.LINES
            and self._counted.isdisjoint(record.name for record in file.kind.records)
            and _says_ids_plainly(file.kind)
        )


def _counted(format: Format) -> set[str]:
    """Return the kinds of records that somewhere are counted: all of these are needed."""
    return {
        count.records
        for file in format.files
        for record in file.records
        for count in record.counts
        if count.records
    }


def _says_ids_plainly(kind: FileKind) -> bool:
    """Whether every id and link of a line stands in it as a value or name of its own."""
    routes = [route for record in kind.records for route in (*record.id, *record.pair)]
    routes += [link.field for record in kind.records for link in record.links]
    routes += [r for record in kind.records for part in record.parts for r in (part.at, *part.pair)]
    return not any(
        route.enters or route.alone in ("$file", "$folder")
        for route in (*routes, *(record.at for record in kind.records))
    )


def _related(words: Collection[str]) -> Callable[[Unit], bool]:
    def is_related(unit: Unit) -> bool:
        for _, value, _ in leaves(unit.entry.value):
            said = scalar(value)
            if said is not None and (
                said in words
                or (not said.isascii() and unicodedata.normalize("NFC", said) in words)
            ):
                return True
        return False

    return is_related
