"""Taking records out of a text, or their words, and leaving all else as it was.

What is left is read again at each join: if the records around it would read differently than
before (two messages run together, an answer become part of a question), a blank line goes between,
then the placeholder that the description gives, and where that does not help either the record is
left alone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from purge_adapters._lines_grammar import Grammar, Span
from purge_adapters._lines_records import (
    Entry,
    LineFields,
    Transcript,
    blanked_lines,
    entries_of,
    stamp,
    take_apart,
)
from purge_adapters._markdown_text import body, line_end, split_lines

_Reading = tuple[str, list[str]]
"""How a record reads: its kind and its lines."""
NOT_SEPARABLE: Final = (
    "A record cannot be cut out without its neighbours running together. Give its kind a "
    "'placeholder', or use 'action: blank'."
)
NOT_EMPTIED: Final = (
    "A record cannot be emptied and still be read as one: its pattern takes the whole line. Give "
    "the pattern a group (?P<text>...), or use 'action: delete'."
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A record that has to go, or (``stamp``: request and date) whose words have to."""

    entry: Entry
    stamp: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """What becomes of a file: its new bytes, or ``None`` where the file itself goes.

    ``refused``: records that were left alone, by their place in the list of cuts.
    """

    data: bytes | None
    refused: dict[int, str] = field(default_factory=dict)


def edit(text: Transcript, cuts: Sequence[Cut], grammar: Grammar, fields: LineFields) -> Edited:
    """Return the file without some of its records."""
    todo = [at for at, cut in enumerate(cuts) if cut.stamp is None or not cut.entry.blanked]
    if grammar.whole and any(cuts[at].stamp is None for at in todo):
        return Edited(None)
    draft = _Draft(text, grammar, fields)
    by_span = {span.start: at for at, span in enumerate(text.spans)}
    gone: dict[int, list[int]] = {}
    """By the number of a record, the places of its cuts."""
    left: set[int] = set()
    for at in todo:
        entry, why = cuts[at].entry, cuts[at].stamp
        number = by_span[entry.span.start]
        gone.setdefault(number, []).append(at)
        if why is not None:
            said = blanked_lines(text, entry, grammar, fields, stamp(*why))
            if not draft.blank(number, said):
                left.add(number)
    if any(cuts[at].stamp is None for at in todo):
        for run in _runs(sorted(gone)):
            if not draft.take(run):
                left.update(number for number in run if not draft.take([number]))
    refused = {
        at: NOT_SEPARABLE if cuts[at].stamp is None else NOT_EMPTIED
        for number in left
        for at in gone[number]
    }
    return Edited(text.lines.joined(draft.lines()), refused)


def _runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Yield the numbers that follow each other, together."""
    run: list[int] = []
    for number in numbers:
        if run and number != run[-1] + 1:
            yield run
            run = []
        run.append(number)
    if run:
        yield run


class _Draft:
    """The lines of a text, each as it was, changed, or gone (``None``)."""

    def __init__(self, text: Transcript, grammar: Grammar, fields: LineFields) -> None:
        self._text = text
        self._grammar = grammar
        self._fields = fields
        self._eol = text.lines.eol
        self._lines: list[str | None] = list(text.lines.lines)
        self._joints: dict[int, tuple[str, ...]] = {}
        """Lines of ours, by the line that was taken out before which they stand."""
        self._ours = frozenset(
            kind.placeholder for kind in grammar.kinds.values() if kind.placeholder is not None
        )

    def lines(self) -> list[str]:
        """Return the lines of the new file."""
        return self._between(0, len(self._lines))

    def _between(self, start: int, end: int, passing: bool = False) -> list[str]:
        made: list[str] = []
        for at in range(start, end):
            line = self._lines[at]
            new = (*self._joints.get(at, ()), *(() if line is None else split_lines(line)))
            made += (one for one in new if not (passing and self._grammar.is_passed_over(one)))
        return made

    def blank(self, number: int, said: Sequence[str]) -> bool:
        """Put other words into a record's place; whether it is still read as one."""
        span, lines = self._text.spans[number], self._text.lines
        kept = self._lines[span.start : span.end]
        eol = line_end(lines.lines[span.start]) or self._eol
        # A file without a final line end keeps it that way.
        whole = eol.join(said) + line_end(lines.lines[span.end - 1])
        self._lines[span.start : span.end] = [whole, *[None] * (len(kept) - 1)]
        new = self._text.lines.joined(self._own(span, False))
        (alone, *more) = entries_of(take_apart(self._grammar, "", new), self._grammar, self._fields)
        emptied = alone.blanked and not more
        if emptied and self._reads_as_before(number, number + 1, [span]):
            return True
        self._lines[span.start : span.end] = kept
        return False

    def take(self, run: Sequence[int]) -> bool:
        """Take records that follow each other out; whether that could be done."""
        spans = self._text.spans
        start, end = spans[run[0]].start, spans[run[-1]].end
        above = spans[run[0] - 1].end if run[0] else 0
        below = spans[run[-1] + 1].start if run[-1] + 1 < len(spans) else len(self._lines)
        kept = self._lines[above:below]
        # Of the blank lines before and behind, the wider gap stays; at the end of a file the one
        # behind, at its beginning the one before.
        at_end = run[-1] + 1 == len(spans)
        drop_above = at_end or (run[0] > 0 and start - above < below - end)
        for at in range(above, end) if drop_above else range(start, below):
            self._lines[at] = None
        for joint in self._possible([spans[at].kind for at in run]):
            self._joints[start] = joint
            if self._reads_as_before(run[0], run[-1] + 1, []):
                return True
        del self._joints[start]
        self._lines[above:below] = kept
        return False

    def _possible(self, kinds: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield what may stand between the records around a gap, the least first."""
        eol = self._eol
        yield ()
        yield (eol,)
        for name in dict.fromkeys(kinds):
            kind = self._grammar.kinds.get(name)
            if kind is not None and kind.placeholder is not None:
                yield (kind.placeholder + eol, eol)
                yield (eol, kind.placeholder + eol, eol)

    def _reads_as_before(self, first: int, end: int, between: Sequence[Span]) -> bool:
        """Whether the records around some are read as they were, and between them only these.

        Args:
            first, end: the numbers of the first record of some and of the one behind the last.
            between: what is read in their place; placeholders do not count.
        """
        return self._reads(first, end, between, False) and self._reads(first, end, between, True)

    def _reads(self, first: int, end: int, between: Sequence[Span], passing: bool) -> bool:
        """As above. ``passing``: as a program reads it that passes over some lines."""
        spans = self._text.spans
        before = self._nearest(range(first - 1, -1, -1), passing)
        behind = self._nearest(range(end, len(spans)), passing)
        expected = [*before, *between, *behind]
        start = before[0].start if before else 0
        stop = behind[0].end if behind else len(self._lines)
        around = self._between(start, stop, passing)
        read = [(span.kind, around[span.start : span.end]) for span in self._grammar.read(around)]
        return self._joined(read) == self._joined(
            (span.kind, self._own(span, passing)) for span in expected
        )

    def _joined(self, records: Iterable[_Reading]) -> list[_Reading]:
        """Return records without placeholders, and with what lies around the described ones as
        one, however it is split: nothing is said of it, so that it may run together."""
        found: list[_Reading] = []
        for kind, own in records:
            said = [line for line in own if line.strip()]
            if kind not in self._grammar.kinds:
                before = found.pop()[1] if found and found[-1][0] == kind else []
                found.append((kind, [*before, *said]))
            elif not all(body(line) in self._ours for line in said):
                found.append((kind, said))
        return found

    def _nearest(self, numbers: Iterable[int], passing: bool) -> list[Span]:
        """Return the first record that is still there and counts."""
        for number in numbers:
            span = self._text.spans[number]
            if any(line.strip() for line in self._own(span, passing)):
                return [span]
        return []

    def _own(self, span: Span, passing: bool) -> list[str]:
        return self._between(span.start, span.end, passing)
