"""One sample: a prompt as the served loop sends it, the reply to learn, and what a test of the reply holds it to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, Literal

from memloop.profiles import Profile, load_profile
from memloop.wire.chat import ChatMessage

Task = Literal["write", "relate", "answer", "read", "conclude", "chat"]
PROFILE: Final[Profile] = load_profile("small")
"""The profile that the model is served with: its prompts are the prompts of training."""


@dataclass(frozen=True, slots=True)
class Sample:
    """``golds`` are what a right reply holds; ``sort`` groups samples in an evaluation (``update``, ``ignore``)."""

    task: Task
    messages: tuple[ChatMessage, ...]
    reply: str
    sort: str = ""
    golds: tuple[str, ...] = field(default=())


def by_rank(places: Sequence[int], rng: Random) -> int:
    """Draw one of the places in a search's results, the first as 0, as often as the note that answers stands there.

    The store's encoder ranks it first for 75 of 100 of our questions, second for 18 and third for 4.
    """
    return rng.choices(places, [0.25**place for place in places])[0]


def some_day(rng: Random) -> datetime:
    """Draw the moment of a turn."""
    return datetime(2024, 1, 1, 8, tzinfo=UTC) + timedelta(days=rng.randrange(1_500), minutes=rng.randrange(800))


_SAID_OF_FUTURE: Final = ("next year", "next month", "tomorrow", "next summer", "in two months", "this autumn")
_SAID_OF_PAST: Final = ("last year", "last month", "yesterday", "two years ago", "last summer", "three months ago")


def dates(rng: Random, at: datetime) -> tuple[dict[str, str], dict[str, str]]:
    """Return the slots of dates as they are said at a moment, and as a note keeps them."""
    when, ago = rng.choice(_SAID_OF_FUTURE), rng.choice(_SAID_OF_PAST)
    return {"when": when, "ago": ago}, {"when": _kept(when, at), "ago": _kept(ago, at)}


def _kept(said: str, at: datetime) -> str:
    def month(later: int) -> str:
        year, number = divmod(at.year * 12 + at.month - 1 + later, 12)
        return f"in {datetime(year, number + 1, 1, tzinfo=UTC):%B %Y}"

    return {
        "next year": f"in {at.year + 1}",
        "last year": f"in {at.year - 1}",
        "two years ago": f"in {at.year - 2}",
        "next month": month(1),
        "last month": month(-1),
        "in two months": month(2),
        "three months ago": month(-3),
        "tomorrow": f"on {at + timedelta(days=1):%Y-%m-%d}",
        "yesterday": f"on {at - timedelta(days=1):%Y-%m-%d}",
        "next summer": f"in the summer of {at.year + 1}",
        "last summer": f"in the summer of {at.year - 1}",
        "this autumn": f"in the autumn of {at.year}",
    }[said]
