"""The pages of an SQLite file: which are free, whose the others are, and where nothing lives.

What SQLite has freed stays readable where nobody overwrote it: in free pages, in the gaps of
pages in use, in the tail of the last page of a long value. This module tells those places from
the ones where rows live, by the file format as it is documented (sqlite.org/fileformat2.html). It
reads bytes that it is given, and neither opens nor changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct, error, unpack_from
from typing import Final, NamedTuple

from purge_adapters._sqlite_bytes import Bytes

__all__ = ["FREE", "GAP", "TAIL", "Bytes", "Malformed", "Pages", "Unused"]

_LEAF_TABLE: Final = 13
_INTERIOR_TABLE: Final = 5
_LEAF_INDEX: Final = 10
_INTERIOR_INDEX: Final = 2
_LOCK_BYTE: Final = 0x40000000
_BTREE_HEADER: Final = Struct(">BHHHB")
_SHORT: Final = Struct(">H")
_PAIR: Final = Struct(">HH")
_LONG: Final = Struct(">I")

FREE: Final = "free page"
GAP: Final = "gap in a page"
TAIL: Final = "tail of a long value"


class Malformed(Exception):
    """The pages do not fit together."""


class Unused(NamedTuple):
    """A stretch of the file in which no row lives: its first byte and the one after its last."""

    kind: str
    start: int
    end: int


class Pages:
    """What each page of a database file is.

    Args:
        content: the whole database file, without frames waiting in a ``-wal``.
        roots: root page of every table and index to the name of its table, from the schema.

    Raises:
        Malformed: the file is cut off, a page is used twice, or a chain leads nowhere.
    """

    def __init__(self, content: Bytes, roots: Mapping[int, str]) -> None:
        self._content = content
        header = content[0:100]
        if len(header) < 100:
            raise Malformed
        size = _SHORT.unpack_from(header, 16)[0]
        self.page_size: Final[int] = 65536 if size == 1 else size
        if self.page_size < 512 or self.page_size & (self.page_size - 1):
            raise Malformed
        self.usable: Final[int] = self.page_size - header[20]
        self.count: Final[int] = len(content) // self.page_size
        said = _LONG.unpack_from(header, 28)[0]
        if header[24:28] == header[92:96] and said > self.count:
            raise Malformed
        self._owners: list[str | None] = [None] * (self.count + 1)
        self._unused: list[Unused] = []
        self._leaves: list[int] = []
        first = content[100:107]
        self._heads = [
            first[at : at + 1] + content[at :: self.page_size][1 : self.count] for at in range(7)
        ]
        """The first bytes of all pages, byte by byte. On the first page they stand further in."""
        try:
            self._walk(header, roots)
        except (error, IndexError):
            raise Malformed from None
        self.unaccounted: Final[int] = self._owners[1:].count(None)
        """Pages that belong to nothing. They are listed as unused."""
        for page, owner in enumerate(self._owners):
            if page and owner is None:
                self._add(FREE, page, 0, self.page_size)
        if len(content) > self.count * self.page_size:
            self._unused.append(Unused(FREE, self.count * self.page_size, len(content)))

    def _walk(self, header: bytes, roots: Mapping[int, str]) -> None:
        self._walk_freelist(_LONG.unpack_from(header, 32)[0], _LONG.unpack_from(header, 36)[0])
        self._mark_fixed(_LONG.unpack_from(header, 52)[0] != 0)
        for root, name in {1: "sqlite_schema", **roots}.items():
            self._walk_tree(root, name)
        if None in self._owners[1:]:
            self._walk_overflow()

    def unused(self) -> Iterator[Unused]:
        """Yield every stretch in which no row lives, in no order."""
        yield from self._unused

    def unused_bytes(self) -> Mapping[str, bytes]:
        """Return, by kind of stretch, all that stands in them, with a gap between each two."""
        content = self._content
        parts: dict[str, list[bytes]] = {}
        for kind, start, end in self._unused:
            parts.setdefault(kind, []).append(content[start:end])
        return {kind: b"\0\0\0\0".join(found) for kind, found in parts.items()}

    def owner(self, offset: int) -> str | None:
        """Return the table whose page holds the byte at ``offset``; ``None``: no table's."""
        page = offset // self.page_size + 1
        owner = self._owners[page] if page <= self.count else None
        return None if owner == "" else owner

    def _page(self, number: int) -> bytes:
        start = (number - 1) * self.page_size
        return self._content[start : start + self.page_size]

    def _take(self, page: int, owner: str) -> None:
        if not 1 <= page <= self.count or self._owners[page] is not None:
            raise Malformed
        self._owners[page] = owner

    def _add(self, kind: str, page: int, start: int, end: int) -> None:
        if end > start:
            base = (page - 1) * self.page_size
            self._unused.append(Unused(kind, base + start, base + end))

    def _walk_freelist(self, trunk: int, total: int) -> None:
        found = 0
        while trunk:
            self._take(trunk, "")
            page = self._page(trunk)
            following, leaves = _LONG.unpack_from(page, 0)[0], _LONG.unpack_from(page, 4)[0]
            if leaves > self.usable // 4 - 2:
                raise Malformed
            for at in range(leaves):
                leaf = _LONG.unpack_from(page, 8 + 4 * at)[0]
                self._take(leaf, "")
                self._add(FREE, leaf, 0, self.page_size)
            self._add(FREE, trunk, 8 + 4 * leaves, self.page_size)
            found += 1 + leaves
            trunk = following
        if found != total:
            raise Malformed

    def _mark_fixed(self, pointer_maps: bool) -> None:
        """Mark the pages that never hold a row: pointer maps and the page of the lock bytes."""
        lock = _LOCK_BYTE // self.page_size + 1
        if lock <= self.count:
            self._take(lock, "")
        if pointer_maps:
            step = self.usable // 5 + 1
            for page in range(2, self.count + 1, step):
                moved = page + 1 if page == lock else page
                if moved <= self.count:
                    self._take(moved, "")

    def _walk_tree(self, root: int, owner: str) -> None:
        # The pages of a tree are most of a file, so this loop does as little as it can.
        size, usable, owners, count = self.page_size, self.usable, self._owners, self.count
        kinds, blocks_high, blocks_low, cells_high, cells_low, start_high, start_low = self._heads
        stack, add = [root], self._unused.append
        while stack:
            number = stack.pop()
            if not 1 <= number <= count or owners[number] is not None:
                raise Malformed
            owners[number] = owner
            nth = number - 1
            base = nth * size
            kind = kinds[nth]
            cells = cells_high[nth] << 8 | cells_low[nth]
            start = (start_high[nth] << 8 | start_low[nth]) or 65536
            end = (108 if number == 1 else 8) + 2 * cells
            if kind in (_INTERIOR_TABLE, _INTERIOR_INDEX):
                page = self._page(number)
                stack.append(_LONG.unpack_from(page, end - 2 * cells)[0])
                for cell in unpack_from(f">{cells}H", page, end - 2 * cells + 4):
                    stack.append(_LONG.unpack_from(page, cell)[0])
                end += 4
            elif kind not in (_LEAF_TABLE, _LEAF_INDEX):
                raise Malformed
            if kind != _INTERIOR_TABLE:
                self._leaves.append(number)
            if not end <= start <= usable:
                raise Malformed
            if start > end:
                add(Unused(GAP, base + end, base + start))
            if usable < size:
                add(Unused(GAP, base + usable, base + size))
            if freeblock := blocks_high[nth] << 8 | blocks_low[nth]:
                self._walk_freeblocks(base, freeblock)

    def _walk_freeblocks(self, base: int, freeblock: int) -> None:
        page = self._content[base : base + self.page_size]
        while freeblock:
            following, length = _PAIR.unpack_from(page, freeblock)
            if freeblock + length > self.usable or (following and following <= freeblock):
                raise Malformed
            if length > 4:
                start = base + freeblock + 4
                self._unused.append(Unused(GAP, start, base + freeblock + length))
            freeblock = following

    def _walk_overflow(self) -> None:
        """Follow the chains of values that are too long for one page."""
        for number in self._leaves:
            page = self._page(number)
            at = 100 if number == 1 else 0
            kind, _, cells, _, _ = _BTREE_HEADER.unpack_from(page, at)
            pointers = at + (12 if kind == _INTERIOR_INDEX else 8)
            most = self.usable - 35 if kind == _LEAF_TABLE else (self.usable - 12) * 64 // 255 - 23
            for cell in unpack_from(f">{cells}H", page, pointers):
                if kind == _INTERIOR_INDEX:
                    cell += 4
                # Nearly all lengths are written in one byte or two and stay in their page.
                first = page[cell]
                if first <= most and first < 0x80:
                    continue
                if first >= 0x80 > page[cell + 1] and (first & 0x7F) << 7 | page[cell + 1] <= most:
                    continue
                payload, cell = _varint(page, cell)
                if payload <= most:
                    continue
                if kind == _LEAF_TABLE:
                    _, cell = _varint(page, cell)
                least = (self.usable - 12) * 32 // 255 - 23
                local = least + (payload - least) % (self.usable - 4)
                local = local if local <= most else least
                chain = _LONG.unpack_from(page, cell + local)[0]
                self._walk_chain(chain, payload - local, self._owners[number] or "")

    def _walk_chain(self, page: int, left: int, owner: str) -> None:
        while left > 0:
            self._take(page, owner)
            held = min(left, self.usable - 4)
            self._add(TAIL, page, 4 + held, self.page_size)
            left -= held
            page = _LONG.unpack_from(self._page(page), 0)[0]
        if page:
            raise Malformed


def _varint(page: bytes, at: int) -> tuple[int, int]:
    """Return the number written at ``at`` and where the next byte is."""
    value = 0
    for n in range(8):
        byte = page[at + n]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + n + 1
    return value << 8 | page[at + 8], at + 9
