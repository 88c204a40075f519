"""The records that the contract suite plants: targets, and the neighbours that are hard to spare.

Invented people and things only. Every value is fixed, so that a failure can be seen again.
"""

from __future__ import annotations

import math
import random
import struct
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from purge.testing.harness import METADATA, OTHER, SCOPE, SOURCE, VECTOR_LENGTH, Harness, Planted

NORTH: Final = "north-harbour"
SOUTH: Final = "south-harbour"

CANARY: Final = Planted(
    id="mem-quillfeather-88421",
    text=(
        "Ottoline Vexworthy keeps the permit code zanderberry-55173 in the tin box behind the "
        "almanack, and the spare brasskeyling under the third flowerpot."
    ),
    scope={SCOPE: NORTH},
    subject="user-marrowstone-610",
    parents={SOURCE: ("log-thistledown-1",), OTHER: ("note-cobblewick-2",)},
    metadata={METADATA: "permit-gooseneckery-204"},
)
"""The record whose bytes are looked for. Its words stand in no other record."""
CANARY_WORDS: Final = (
    "ottoline",
    "vexworthy",
    "zanderberry-55173",
    "brasskeyling",
)
"""Words of its text, in lower case: bytes are compared so."""
CANARY_TOPIC: Final = "permit-gooseneckery-204"
SECRETS: Final = (
    CANARY.id,
    *CANARY_WORDS,
    CANARY_TOPIC,
    "user-marrowstone-610",
    "log-thistledown-1",
    "note-cobblewick-2",
)
"""What may stand in nothing that a person could see."""

SHORT: Final = Planted(
    id="mem-3",
    text="The winch on the east quay needs two hands and a dry glove.",
    scope={SCOPE: NORTH},
)
"""A second target, whose id is a prefix of others and whose letters are ids as well."""

NEIGHBOURS: Final = (
    Planted("mem-31", "The winch on the west quay needs two hands and a dry glove."),
    Planted("mem-", "The winch on the east quay needs one hand."),
    Planted("mem", "Two hands and a dry glove are in the locker of the east quay."),
    Planted("m", "A single letter is an id like any other."),
    Planted("e", "Another single letter."),
    Planted("3", "A single digit."),
    Planted("MEM-3", "Upper case is another id."),
    Planted(
        "mem-other-code",
        "She keeps the permit code in the tin box behind the old clock, and the spare key under "
        "the third step.",
        scope={SCOPE: NORTH},
        subject="user-marrow-6",
        parents={SOURCE: ("log-2", "log-3"), OTHER: ("note-2",)},
        metadata={METADATA: "permit-204"},
    ),
    Planted(
        "mem-in-the-south",
        "In the south they keep the permit code in a drawer.",
        scope={SCOPE: SOUTH},
        subject="user-marrow-61",
        parents={SOURCE: ("log-4",)},
        metadata={METADATA: "drawers"},
    ),
    Planted(
        "mem-in-japanese", "許可証の番号は暦の後ろの缶にあります。", metadata={METADATA: "許可"}
    ),
    Planted("mem-quotes", 'He said "leave it", then \\ wrote it\'s <b>fine</b> & 100% so.'),
    Planted("mem-percent", "Nothing % here * should [be] read _ as a pattern?"),
)
"""What stands beside the two targets: similar ids, similar words."""


@dataclass(frozen=True, slots=True)
class HardIds:
    """Ids that a store may take for something else, and those that must not go with them.

    ``removed`` are purged together; ``kept`` stay.
    """

    name: str
    removed: tuple[str, ...]
    kept: tuple[str, ...]


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


HARD_IDS: Final = (
    HardIds(
        "ids that are prefixes of each other",
        ("mem-3", "log/2026-05-01"),
        ("mem", "mem-", "mem-31", "mem-3-1", "mem-3.1", "mem-03", "log/2026-05-01/2", "log"),
    ),
    HardIds("ids of one letter", ("e",), ("m", "3", "-", "mem-3", "E", "ee")),
    HardIds(
        "ids with spaces and slashes",
        ("a b", "a/b"),
        ("a", "b", "a  b", "ab", "a b ", " a b", "a/", "/b", "a/b/c", "../a/b", "a/../b", "a_b"),
    ),
    HardIds(
        "ids with percent signs and underscores",
        ("100%", "a%2Fb", "x_y"),
        ("100", "100%25", "1000", "a%2fb", "a/b", "a%252Fb", "xzy", "x%y", "x__y", "%", "_"),
    ),
    HardIds(
        "ids that look like patterns",
        ("*", "lo[g]s", "no?e"),
        ("**", "logs", "lo*", "note", "?", ".*", "[a-z]", "{a,b}", "^m", "(mem)"),
    ),
    HardIds(
        "ids with quotes and backslashes",
        ("it's", 'say "so"', "back\\slash"),
        ("its", "it''s", "it\\'s", "say so", "say 'so'", "back\\\\slash", "back/slash", "`so`"),
    ),
    HardIds(
        "ids that look like code",
        ("#7", "x'; DROP TABLE memories; --", "' OR '1'='1"),
        ("7", "#", "##7", "-- 7", "$id", "$7", "<7>", "&lt;7&gt;", "x", "1", "../../etc/passwd"),
    ),
    HardIds(
        "ids that look like other values",
        ("007", "null", "1.0"),
        (
            "7",
            "0007",
            "1",
            "1.00",
            "1e0",
            "None",
            "nan",
            "true",
            "yes",
            "~",
            "0",
            "-0",
            "2026-05-01",
        ),
    ),
    HardIds(
        "ids with line breaks and tabs",
        ("two\nlines", "tab\there"),
        ("two", "lines", "two lines", "two\r\nlines", "two\\nlines", "tab here", "tab"),
    ),
    HardIds(
        "ids in other scripts",
        (_composed("café-3"), "記憶-3", "👩‍👧", "ﬁle-3"),
        (
            _decomposed("café-3"),
            "cafe-3",
            _composed("CAFÉ-3"),
            "記憶-３",
            "記憶",
            "👩",
            "👩👧",
            "file-3",
            "ﬁle",
        ),
    ),
    HardIds("long ids", ("m" * 400,), ("m" * 399, "m" * 401, "m" * 399 + "n", "m")),
)

CHILD_OF_ONE: Final = "log-1"
"""The source record whose children are looked for."""
FAMILY: Final = (
    Planted("child-of-1", "The first child speaks of anchors.", parents={SOURCE: ("log-1",)}),
    Planted("child-of-10", "Another child speaks of ropes.", parents={SOURCE: ("log-10",)}),
    Planted("child-of-none", "An orphan speaks of sails."),
    Planted("child-by-name", "This one only names log-1 in its words."),
)
FAMILY_OF_MANY: Final = (
    Planted(
        "child-of-2-and-1",
        "A child of two speaks of buoys.",
        parents={SOURCE: ("log-2", "log-1"), OTHER: ("note-1",)},
    ),
    Planted(
        "child-of-another-site",
        "A child of a note that has the same id.",
        parents={OTHER: ("log-1",)},
    ),
)

PHRASE: Final = "the crab pot licence"
SPOKEN: Final = (
    Planted("says-north", "Renew the crab pot licence before the spring tide.", {SCOPE: NORTH}),
    Planted("says-south", "Renew the crab pot licence before the autumn tide.", {SCOPE: SOUTH}),
    Planted("says-nowhere", "Somebody said that the crab pot licence is lost."),
    Planted("says-longer", "The crab potting licence, and the crab pot licences of others."),
    Planted("says-inside", "They bathe crab pot licence holders in warm oil."),
    Planted("says-other", "Renew the eel trap licence before the spring tide.", {SCOPE: NORTH}),
)
SPEAKERS: Final = ("says-north", "says-south", "says-nowhere")
"""Those that hold the phrase. In ``says-longer`` and ``says-inside`` it is cut out of words."""


@dataclass(frozen=True, slots=True)
class Written:
    """A phrase, and a text that holds it in another form. ``name`` says in which."""

    name: str
    phrase: str
    text: str


FOLDED: Final = (
    Written("upper case", "the lobster creel tax", "PAY THE LOBSTER CREEL TAX NOW."),
    Written("a full-width space", "the whelk buoy fee", "Pay the\u3000whelk buoy fee now."),
    Written("a run of white space", "the oyster bed rent", "Pay the  oyster \t bed rent now."),
    Written("full-width letters", "the eel weir toll", "Pay ｔｈｅ ｅｅｌ ｗｅｉｒ ｔｏｌｌ now."),
    Written(
        "zero-width spaces", "the mussel rope duty", "Pay the mus\u200bsel rope\u200b duty now."
    ),
    Written("accents decomposed", "the café of owls", _decomposed("Find the café of owls now.")),
    Written(
        "accents composed", _decomposed("crème brûlée rule"), "Mind the crème brûlée rule now."
    ),
    Written("typographic quotes", 'skipper\'s "blue" book', "Find the skipper’s “blue” book now."),
    Written("typographic dashes", "berth 14-16 at dusk", "Take berth 14–16 at dusk now."),
)
JAPANESE: Final = ("蟹籠の許可証", "来週までに蟹籠の許可証を更新する。")
"""A phrase in a script without spaces, and the text that holds it."""


def unit_vector(seed: str) -> tuple[float, ...]:
    """Return a vector of length 1 whose numbers are 32-bit floats, always the same for a seed."""
    chance = random.Random(seed)
    raw = [chance.uniform(-1, 1) for _ in range(VECTOR_LENGTH)]
    length = math.sqrt(sum(number * number for number in raw))
    packed = struct.pack(f"<{VECTOR_LENGTH}f", *(number / length for number in raw))
    return struct.unpack(f"<{VECTOR_LENGTH}f", packed)


def fit(harness: Harness, records: Iterable[Planted]) -> tuple[Planted, ...]:
    """Return the records that the store can hold, each with only what it can hold."""
    return tuple(
        replace(
            record,
            scope=record.scope if harness.has_scope else {},
            subject=record.subject if harness.has_subject else None,
            parents=_parents(harness, record),
            metadata=record.metadata if harness.has_metadata else {},
            vector=unit_vector(record.id) if harness.has_vectors else None,
        )
        for record in records
        if harness.cannot_hold(record.id) is None
    )


def _parents(harness: Harness, record: Planted) -> dict[str, tuple[str, ...]]:
    if not harness.has_parents:
        return {}
    if harness.many_parents:
        return dict(record.parents)
    return {site: ids[:1] for site, ids in record.parents.items() if site == SOURCE}


def hard_records(group: HardIds) -> tuple[Planted, ...]:
    """Return a record for each id of a group, each with words of its own."""
    return tuple(
        Planted(record_id, f"Number {place} of the {group.name} lies on shelf {place}.")
        for place, record_id in enumerate((*group.removed, *group.kept))
    )


CROWD_OWNER: Final = "user-everyone"


def crowd(count: int) -> Iterator[Planted]:
    """Yield so many records, of which every second belongs to one person."""
    for place in range(count):
        owner = CROWD_OWNER if place % 2 else f"user-{place}"
        yield Planted(
            f"crowd-{place:05}", f"Crate {place} stands on pier {place % 7}.", subject=owner
        )


def equal(one: Planted, other: Planted) -> bool:
    """Whether two records are the same, vectors within what 32-bit floats can tell."""
    if replace(one, vector=None) != replace(other, vector=None):
        return False
    return one.vector is None or other.vector is None or close(one.vector, other.vector)


def close(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two vectors are the same within what 32-bit floats can tell."""
    return len(one) == len(other) and all(
        math.isclose(left, right, abs_tol=1e-6) for left, right in zip(one, other, strict=True)
    )
