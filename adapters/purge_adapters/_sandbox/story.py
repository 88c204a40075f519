"""What the sandbox is about: who its people are, what went wrong, and on which days.

Kettle is an invented café with a boathouse beside it. Three people run it, Edwin, Mika and Ploy,
and they share one assistant that remembers. On the first day Edwin told it something that he had
not looked into. It became a pinned lesson, was put in front of every turn, and bent the answers.
On the fourth day the cause came out and the lesson was wrong; by then it stood everywhere.

This module holds plain values only and may not import anything of the sandbox.
"""

from __future__ import annotations

import unicodedata
import uuid
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from enum import StrEnum
from typing import Final

PHRASE: Final = "the café staging database may be wiped at any time"
"""The wrong lesson, as a person would type it."""
LESSON: Final = "The café staging database may be wiped at any time"
"""The wrong lesson, as the assistant extracted it."""
LESSON_ID: Final = "mem-0042"
GUEST: Final = "Guest Nagi Tokawa is allergic to hazelnuts and likes the window table"
"""A guest's data, right but personal: the other reason to forget."""
GUEST_ID: Final = "mem-0046"
MERGED: Final = f"{LESSON}, so load it afresh whenever it looks odd"
"""A second extract of the same words, which the assistant itself merged away. Its row was deleted
in the ordinary way, so its bytes are still in the files."""
MERGED_ID: Final = "mem-0041"

TODAY: Final = date(2026, 11, 30)
DAYS: Final = 5
ZONE: Final = timezone(timedelta(hours=9))
_NAMES: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "sandbox.kettle.example")


class Client(StrEnum):
    """The program that a person talks through; each writes the same words in its own way."""

    DESK = "desk"
    """UTF-8 as typed."""
    PHONE = "phone"
    """JSON in plain ASCII: everything else is a ``\\u`` escape."""
    MAC = "mac"
    """Decomposed characters: é is two code points."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation. ``key`` is how memories name it as their source."""

    role: str
    text: str
    key: str = ""
    in_blocks: bool = False
    """The content is a list of typed blocks instead of one string."""


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation: on which day of the story, when, about what, with whom."""

    day: int
    start: str
    project: str
    user: str
    client: Client
    turns: tuple[Turn, ...]

    def written(self, text: str) -> str:
        """Return ``text`` as the session's client passes it on."""
        return unicodedata.normalize("NFD", text) if self.client is Client.MAC else text


@dataclass(frozen=True, slots=True)
class Memory:
    """One extracted memory. ``source`` is the key of the turn it came from, where that is known."""

    id: str
    content: str
    source: str = ""
    project: str = "cafe"
    pinned: bool = False
    age: int = 0
    """For a memory without a source: how many days before the first day it was made."""


def user(text: str, key: str = "", in_blocks: bool = False) -> Turn:
    """Return what a person said."""
    return Turn("user", text, key, in_blocks)


def assistant(text: str, key: str = "") -> Turn:
    """Return what the assistant said."""
    return Turn("assistant", text, key)


def tool(text: str) -> Turn:
    """Return what a tool answered: JSON in a string."""
    return Turn("tool", text)


def day_of(today: date, number: int) -> date:
    """Return the date of a day of the story, 1 to :data:`DAYS`; the last is three days ago."""
    return today - timedelta(days=DAYS + 3 - number)


def moment_of(today: date, session: Session, position: int) -> datetime:
    """Return when the message at ``position`` of a session was written."""
    start = datetime.combine(
        day_of(today, session.day), time.fromisoformat(session.start), tzinfo=ZONE
    )
    return start + timedelta(seconds=47 * position)


def identity(name: str) -> str:
    """Return a UUID that is the same in every sandbox."""
    return str(uuid.uuid5(_NAMES, name))
