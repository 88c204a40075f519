"""The ways in which one and the same record is written, each with its near misses.

Each form has a phrase of its own, so that a look which only says *which* phrases are there (at a
backup) can be held to every form as well.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from purge.targets import Target, TargetKind, Targets


def raw(text: str) -> str:
    """Return a JSON string with nothing escaped that need not be."""
    return json.dumps(text, ensure_ascii=False)


def _upper_hexadecimal(text: str) -> str:
    first, *rest = json.dumps(text).split("\\u")
    return "\\u".join([first, *(piece[:4].upper() + piece[4:] for piece in rest)])


def _some_escaped(text: str) -> str:
    return raw(text).replace("é", "\\u00e9").replace("k", "\\u006b", 1).replace("a", "\\u0061", 1)


def _for_html(text: str) -> str:
    written = raw(text)
    for sign in "<>&'":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return written


FORMS: Final[dict[str, Callable[[str], str]]] = {
    "plain UTF-8": raw,
    "escapes": json.dumps,
    "upper-case hexadecimal": _upper_hexadecimal,
    "some characters escaped": _some_escaped,
    "JSON inside a JSON string": lambda text: json.dumps(json.dumps({"said": [text]})),
    "escaped quote and newline": lambda text: raw(f'"{text}"\n'),
    "NFC": lambda text: raw(unicodedata.normalize("NFC", text)),
    "NFD": lambda text: raw(unicodedata.normalize("NFD", text)),
    "upper case": lambda text: raw(text.upper()),
    "full-width space": lambda text: raw(text.replace(" ", "\u3000")),
    "escaped slash": lambda text: raw(text).replace("/", "\\/"),
    "escaped for HTML": _for_html,
    "beside an invalid byte": lambda text: raw(f"\udcff {text} \udcfe"),
    "a surrogate pair": lambda text: raw(text).replace("🔑", "\\ud83d\\udd11"),
}
"""By name, what writes a text down as a JSON string."""
_TREES: Final = (
    *("alder", "birch", "cedar", "damson", "elder", "fir", "ginkgo"),
    *("hazel", "ivy", "juniper", "kapok", "larch", "maple", "nutmeg"),
)


def phrase_of(form: str) -> str:
    """Return what is looked for in the record of a form."""
    tree = _TREES[list(FORMS).index(form)]
    return f'Žofie’s café key 🔑 "no 5/12" is in <the {tree}> & its box\nat noon'


def near_misses(phrase: str) -> dict[str, str]:
    """Return texts that are nearly the phrase, and are not."""
    return {
        "a longer word at the end": phrase + "tide",
        "a longer word in front": "A" + phrase.casefold(),
        "another letter": phrase.replace("é", "e"),
        "a word less": phrase.replace(" key", ""),
        "a word more": phrase.replace("box", "old box"),
        "its first half": phrase[:30],
    }


@dataclass(frozen=True, slots=True)
class Writing:
    """One record: its id, the number of the form that it holds or ``None``, and what stands there.

    ``written`` is a JSON string in bytes, quotes included.
    """

    id: str
    key: int | None
    written: bytes


def writings() -> Iterator[Writing]:
    """Yield a record for every form, and beside each one its near misses."""
    for key, (name, write) in enumerate(FORMS.items()):
        phrase = phrase_of(name)
        yield Writing(f"form-{key}", key, _encoded(write(f"Note: {phrase}.")))
        for place, text in enumerate(near_misses(phrase).values()):
            yield Writing(f"near-{key}-{place}", None, _encoded(write(text)))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def all_phrases() -> Targets:
    """Return the phrases of all forms; their keys are the numbers of the forms."""
    return Targets(
        Target(key, TargetKind.PHRASE, phrase_of(name)) for key, name in enumerate(FORMS)
    )
