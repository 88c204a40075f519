"""How a text is made of records, told by its lines: the description and what it makes of a text.

A description is data that a manifest can hold: for each kind of record a pattern for the line with
which it begins, or for every line of it. Reading follows it line by line, so that what a line is
depends on nothing but the description and the record it goes on with. Pure: no input or output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from purge_adapters._markdown_text import body

TEXT_GROUP: Final = "text"
"""The group of a pattern that holds what a line says; all around it is its prefix."""
_WORD: Final = re.compile(r"\w")
REST: Final = "text"
"""How a record is called that no kind of the description claims."""
WHOLE: Final = "file"
"""How a record is called where nothing is described: the whole file."""


@dataclass(frozen=True)
class LineKind:
    """One kind of record, as a manifest describes it."""

    begins: str | None = field(
        default=None,
        metadata={
            "description": "A regular expression for the line with which such a record begins. It "
            "goes on until another one begins. What it matches is taken off the text, or all but "
            "its group (?P<text>...); other named groups are fields of the record."
        },
    )
    each: str | None = field(
        default=None,
        metadata={
            "description": "A regular expression for every line of such a record, instead of "
            "'begins': lines like this that follow each other are one record."
        },
    )
    goes_on: str | None = field(
        default=None,
        metadata={
            "description": "With 'begins': a regular expression for its further lines. Without "
            "it, every line belongs to it that begins no other record."
        },
    )
    ends: str | None = field(
        default=None,
        metadata={
            "description": "With 'begins': a regular expression that stands somewhere in its last "
            "line (</memory>). What follows belongs to it no more."
        },
    )
    single: bool = field(
        default=False,
        metadata={"description": "With 'begins': such a record is that one line."},
    )
    placeholder: str | None = field(
        default=None,
        metadata={
            "description": "A line that takes the place of such a record where the ones around it "
            "would otherwise run together. Without it, such a record is left alone there."
        },
    )
    markdown: bool = field(
        default=False,
        metadata={"description": "What it says is Markdown: a phrase may go over its signs."},
    )
    markers: bool = field(
        default=True,
        metadata={
            "description": "Whether a RETRACTS: line in such a record is a marker, where the site "
            "is listed under 'markers.from'. Say no for what a program writes."
        },
    )


@dataclass(frozen=True, slots=True)
class Span:
    """The lines of one record: from ``start`` up to, not including, ``end``; without the blank
    lines around it."""

    kind: str
    start: int
    end: int


class Grammar:
    """A description, ready to read with.

    Args:
        kinds: by name; the first that claims a line has it. One without a pattern is what is left.
        fields: by name, a pattern that is looked for in each record; its group is the value.
        passed_over: a pattern for lines that the program itself passes over when it reads.

    Raises:
        ValueError: it cannot be read with; one sentence that names the key.
    """

    def __init__(
        self,
        kinds: Mapping[str, LineKind],
        fields: Mapping[str, str],
        passed_over: str | None = None,
    ) -> None:
        self.kinds = dict(kinds)
        self._passed_over = (
            _compiled("passed_over", passed_over) if passed_over is not None else None
        )
        self.whole = not kinds
        self.fields = {name: _compiled(f"fields.{name}", text) for name, text in fields.items()}
        for name, pattern in self.fields.items():
            if pattern.groups != 1:
                raise ValueError(f"fields.{name}: must have one group, which is the value.")
        self._begins: dict[str, re.Pattern[str]] = {}
        self._each: dict[str, re.Pattern[str]] = {}
        self._goes_on: dict[str, re.Pattern[str]] = {}
        self._ends: dict[str, re.Pattern[str]] = {}
        rest = [name for name, kind in kinds.items() if kind.begins is None and kind.each is None]
        if len(rest) > 1:
            raise ValueError(
                f"kinds: {' and '.join(rest)} have neither 'begins' nor 'each'. Only one may: it "
                "is what no other kind claims."
            )
        self.rest = rest[0] if rest else REST
        for name, kind in kinds.items():
            self._take(name, kind)

    def _take(self, name: str, kind: LineKind) -> None:
        at = f"kinds.{name}"
        if kind.begins is not None and kind.each is not None:
            raise ValueError(f"{at}: 'begins' and 'each' contradict each other; give one.")
        further = {"single": kind.single, "goes_on": kind.goes_on, "ends": kind.ends}
        given = [key for key, value in further.items() if value]
        if given and kind.begins is None:
            raise ValueError(f"{at}.{given[0]}: means something only beside 'begins'.")
        if len(given) > 1 and kind.single:
            raise ValueError(f"{at}: 'single' and '{given[1]}' contradict each other; give one.")
        if kind.placeholder is not None and not _is_line(kind.placeholder):
            raise ValueError(f"{at}.placeholder: must be one line with something in it.")
        for key, text, into in (
            ("begins", kind.begins, self._begins),
            ("each", kind.each, self._each),
            ("goes_on", kind.goes_on, self._goes_on),
            ("ends", kind.ends, self._ends),
        ):
            if text is not None:
                into[name] = _compiled(f"{at}.{key}", text)

    @property
    def names(self) -> frozenset[str]:
        """Every field that the description can read."""
        patterns = (*self._begins.values(), *self._each.values(), *self._goes_on.values())
        groups = {group for pattern in patterns for group in pattern.groupindex}
        return frozenset((groups - {TEXT_GROUP}) | self.fields.keys())

    # --- reading --------------------------------------------------------------------------------

    def read(self, lines: Sequence[str]) -> tuple[Span, ...]:
        """Return the records of a text, in order. Every line with something in it is in one.

        Args:
            lines: all lines, each with its end.
        """
        if self.whole:
            return (Span(WHOLE, 0, len(lines)),) if lines else ()
        spans: list[Span] = []
        kind, start, end, over = "", 0, 0, False
        for at, line in enumerate(lines):
            said = body(line)
            claimed, fresh = self._claim(said, "" if over else kind, at == end)
            if not claimed:
                continue
            if fresh or claimed != kind:
                if kind:
                    spans.append(Span(kind, start, end))
                kind, start, end, over = claimed, at, at + 1, False
            elif said.strip():
                end = at + 1
            over = over or bool(self.ending(kind, said))
        if kind:
            spans.append(Span(kind, start, end))
        return tuple(spans)

    def _claim(self, said: str, kind: str, touches: bool) -> tuple[str, bool]:
        """Return whose line it is, and whether a record begins with it; no name for nobody's."""
        for name in self.kinds:
            if name in self._begins and self._begins[name].match(said):
                return name, True
            if name in self._each and self._each[name].match(said):
                return name, not touches
        if kind in self._begins and not self.kinds[kind].single:
            pattern = self._goes_on.get(kind)
            if pattern is None or (
                touches and (pattern.match(said) or bool(self.ending(kind, said)))
            ):
                return kind, False
        if kind == self.rest or said.strip():
            return self.rest, False
        return "", False

    def is_passed_over(self, line: str) -> bool:
        """Whether the program itself passes over a line when it reads the text back."""
        return self._passed_over is not None and self._passed_over.match(line) is not None

    def ending(self, kind: str, said: str) -> str:
        """Return the sign in a line that a record of this kind ends with it, or nothing."""
        found = self._ends[kind].search(said) if kind in self._ends else None
        return found[0] if found is not None else ""

    def prefix(self, span: Span, at: int, said: str) -> tuple[str, str]:
        """Return what a line of a record has before what it says, and what it says."""
        match = self._match(span, at, said)
        if match is None:
            return "", said
        if TEXT_GROUP in match.re.groupindex and match.start(TEXT_GROUP) >= 0:
            return said[: match.start(TEXT_GROUP)], match[TEXT_GROUP]
        if match.end() == len(said) and not self._is_heading(span, at) and _WORD.search(said):
            return "", said  # The pattern is for the whole of a line; that is no prefix.
        return said[: match.end()], said[match.end() :]

    def _is_heading(self, span: Span, at: int) -> bool:
        return span.kind in self._begins and at == span.start

    def _match(self, span: Span, at: int, said: str) -> re.Match[str] | None:
        if span.kind in self._each:
            pattern: re.Pattern[str] | None = self._each[span.kind]
        elif at == span.start:
            pattern = self._begins.get(span.kind)
        else:
            pattern = self._goes_on.get(span.kind)
        return pattern.match(said) if pattern is not None else None

    def values(self, span: Span, lines: Sequence[str]) -> dict[str, str]:
        """Return the fields that a record has: the first value of each."""
        found: dict[str, str] = {}
        for at in range(span.start, span.end):
            match = self._match(span, at, body(lines[at]))
            for name, value in (match.groupdict() if match is not None else {}).items():
                if name != TEXT_GROUP and value and value.strip():
                    found.setdefault(name, value.strip())
        for name, _, match in self.fields_in(span, lines):
            if value := (match[1] or "").strip():
                found.setdefault(name, value)
        return found

    def fields_in(
        self, span: Span, lines: Sequence[str]
    ) -> Iterator[tuple[str, int, re.Match[str]]]:
        """Yield where in a record the pattern of a field matches: the name, the line, the match in
        what that line says."""
        for at in range(span.start, span.end) if self.fields else ():
            _, said = self.prefix(span, at, body(lines[at]))
            for name, pattern in self.fields.items():
                if (match := pattern.search(said)) is not None:
                    yield name, at, match


def _compiled(at: str, text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"{at}: is no regular expression ({error}).") from error
    if not text:
        raise ValueError(f"{at}: is empty; every line would match it.")
    return pattern


def _is_line(text: str) -> bool:
    return bool(text.strip()) and "\n" not in text and "\r" not in text
