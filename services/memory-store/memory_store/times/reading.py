"""Reads the times of a text: English by the patterns of ``english``, other languages as ``dateparser`` finds them."""

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from dateparser.search import search_dates

from memloop.wire.memory import MOST_TIMES, NamedTime, Source
from memory_store.embedding.languages import language_of, language_of_script
from memory_store.times.days import DAY
from memory_store.times.english import Tense, english

_MOST_CHARS: Final = 4_000
"""Of an English text that are read: a fact says its time early."""
_MOST_FOREIGN_CHARS: Final = 100
"""``dateparser`` takes 2 ms for so many of prose, and 40 ms for the worst: one sentence."""
_MOST_SAID_CHARS: Final = 256
_CODES: Final = {
    "arabic": "ar",
    "armenian": "hy",
    "catalan": "ca",
    "danish": "da",
    "dutch": "nl",
    "finnish": "fi",
    "french": "fr",
    "german": "de",
    "greek": "el",
    "hindi": "hi",
    "hungarian": "hu",
    "indonesian": "id",
    "italian": "it",
    "lithuanian": "lt",
    "norwegian": "nb",
    "portuguese": "pt",
    "romanian": "ro",
    "russian": "ru",
    "spanish": "es",
    "swedish": "sv",
    "tamil": "ta",
    "turkish": "tr",
}
_COMING: Final = re.compile(r"\b(?:coming up|upcoming)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d_]+")
_LEAST_LETTERS: Final = 4
"""Of the longest word of a foreign time: shorter ones are abbreviations such as "mit" for Wednesday."""


def times_of(memory: str, said_at: datetime, sources: Sequence[Source]) -> tuple[NamedTime, ...]:
    """Return the times of a memory: those that its text names, else those of its source if that is a single turn."""
    found = times_in(memory, said_at)
    if found or len(sources) != 1:
        return found
    said = times_in(sources[0].content, sources[0].timestamp or said_at)
    return said if len(said) == 1 else ()  # of several, none is sure to be that of the memory


def asked_for(question: str, asked_at: datetime) -> Collection[NamedTime]:
    """Return the times that a question names. "Who comes on Friday?" may ask for the last or the next one: both count.

    "What is coming up?" asks for the next 31 days.
    """
    found = dict.fromkeys((*times_in(question, asked_at, unmarked="past"), *times_in(question, asked_at)))
    if not found and (coming := _COMING.search(question[:_MOST_CHARS])):
        today = asked_at.date()
        return (NamedTime(text=coming.group(), start=today + DAY, end=today + DAY * 31),)
    return found


def times_in(text: str, said_at: datetime, *, unmarked: Tense = "future") -> tuple[NamedTime, ...]:
    """Return the times that the text names, in its order, at most four, relative to the day of ``said_at``.

    The day is that of the moment's own zone. ``unmarked``: the tense of a sentence that shows none. Never raises; its
    cost is bounded whatever the text is.
    """
    said = (said_at if said_at.tzinfo else said_at.replace(tzinfo=UTC)).date()
    words = [word.casefold() for word in islice((match.group() for match in _WORD.finditer(text[:_MOST_CHARS])), 64)]
    language = language_of(words) or next(filter(None, map(language_of_script, words)), None)
    if language is not None:
        return _foreign(text[:_MOST_FOREIGN_CHARS], _CODES.get(language), said_at)
    found = sorted(english(text[:_MOST_CHARS], said, unmarked))
    return tuple(
        NamedTime(text=" ".join(text[start:end].split())[:_MOST_SAID_CHARS], start=days[0], end=days[1])
        for start, end, days in found[:MOST_TIMES]
    )


def _foreign(text: str, code: str | None, said_at: datetime) -> tuple[NamedTime, ...]:
    if code is None:
        return ()
    settings = {"RELATIVE_BASE": said_at.replace(tzinfo=None), "PREFER_DATES_FROM": "past"}
    try:
        found = search_dates(text, languages=[code], settings=settings) or []
    except Exception:  # noqa: BLE001 - a text must never fail a write
        return ()
    days = [
        (words, moment.date())
        for words, moment in found
        if max(map(len, _WORD.findall(words)), default=0) >= _LEAST_LETTERS
    ]
    return tuple(NamedTime(text=words[:_MOST_SAID_CHARS], start=day, end=day) for words, day in days[:MOST_TIMES])
