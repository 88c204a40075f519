"""Taking a note apart into lines and putting it together again, byte for byte.

Pure: no input or output. Everything later works on the lines made here, and every byte of a file
is in exactly one of them or in the byte order mark before them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

BOM: Final = "\ufeff"
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_EOL: Final = re.compile(r"\r\n|\n|\r")

_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()\\]|\\.|\([^()]*\))*\)")
_WIKI: Final = re.compile(r"!?\[\[([^\[\]|]*)(?:\|([^\[\]]*))?\]\]")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG: Final = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)(?:[\s/][^<>]*)?>")
_APART: Final = frozenset(("br", "p", "div", "li", "td", "th", "tr", "hr"))
"""Tags that keep the words before and after them apart."""
_ESCAPED: Final = re.compile(r"\\(\r\n|[\r\n]|[!-/:-@\[-`{-~])")
_SIGNS: Final = re.compile(r"\*{1,3}|~~|==|`+|(?<![^\W_])_{1,3}|_{1,3}(?![^\W_])")


@dataclass(frozen=True, slots=True)
class Lines:
    """A text as lines with their ends. ``bom + "".join(lines)``, encoded, is the file.

    ``faithful``: every byte could be read as text in ``encoding``. Otherwise bytes that could not
    are kept as lone surrogates, and a phrase beyond ASCII may stand there in another encoding.
    ``damaged``: it holds NUL characters, and not as a text may by accident.
    """

    bom: str
    lines: tuple[str, ...]
    encoding: str
    faithful: bool
    damaged: bool = False

    def encode(self, text: str) -> bytes:
        """Return the bytes that ``text``, a part of this file, has in it."""
        return text.encode(self.encoding, "surrogateescape" if self._utf8 else "surrogatepass")

    @property
    def _utf8(self) -> bool:
        return self.encoding == "utf-8"

    @property
    def eol(self) -> str:
        """The end that most lines have; ``\\n`` where there is none."""
        ends: dict[str, int] = {}
        for line in self.lines:
            if end := line_end(line):
                ends[end] = ends.get(end, 0) + 1
        return max(ends, key=ends.__getitem__) if ends else "\n"

    def joined(self, lines: Iterable[str]) -> bytes:
        """Return the bytes of a file that has these lines instead."""
        return self.encode(self.bom + "".join(lines))


def read_lines(data: bytes) -> Lines:
    """Return the lines of a file: UTF-8, or UTF-16 where its byte order mark says so.

    Lines end as CommonMark has it: ``\\n``, ``\\r\\n`` or a lone ``\\r``, never at U+2028.
    """
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            try:
                text = data.decode(encoding, "surrogatepass")
            except UnicodeDecodeError:
                break
            return Lines(BOM, split_lines(text[1:]), encoding, True)
    text = data.decode("utf-8", "surrogateescape")
    bom = BOM if text.startswith(BOM) else ""
    clean, nothing = is_clean(text), text.count("\0")
    # UTF-16 without a mark reads as UTF-8 of which half are NUL characters.
    damaged = nothing * 4 > len(text) or (nothing > 0 and not clean)
    return Lines(bom, split_lines(text[len(bom) :]), "utf-8", clean, damaged)


def is_clean(text: str) -> bool:
    """Whether no byte of it had to be kept as a lone surrogate."""
    return not re.search("[\udc80-\udcff]", text)


def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text, each with its end."""
    return tuple(_LINE.findall(text))


def line_end(line: str) -> str:
    """Return the end of a line: ``\\n``, ``\\r\\n``, ``\\r`` or nothing."""
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1:] if line[-1:] in ("\n", "\r") else ""


def body(line: str) -> str:
    """Return a line without its end."""
    return line[: len(line) - len(line_end(line))]


def plain_ends(text: str) -> str:
    """Return a text with ``\\n`` as its only line end, as the matcher knows it."""
    return _EOL.sub("\n", text) if "\r" in text else text


def visible(text: str) -> str:
    """Return what a person sees of a text once it is rendered: without emphasis, code marks,
    link targets, tags and escapes. A reading for looking, beside the raw one."""
    shown = _TAG.sub(lambda m: " " if m.group(1).lower() in _APART else "", without_comments(text))
    shown = _WIKI.sub(lambda m: m.group(2) or m.group(1), shown)
    shown = _LINK.sub(r"\1", shown)
    return _SIGNS.sub("", _ESCAPED.sub(r"\1", shown))


def without_comments(text: str) -> str:
    """Return a text without its HTML comments; one that is never closed stays."""
    # Behind the last end there is nothing to find, and looking for it there again for each
    # beginning would take the square of the length.
    end = text.rfind("-->") + 3
    return _COMMENT.sub("", text[:end]) + text[end:] if end > 2 else text


def digest(parts: Sequence[bytes]) -> str:
    """Return a name for the bytes of a record; equal bytes have equal names."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:32]
