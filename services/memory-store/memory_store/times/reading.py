"""Reads the times of a text: English by patterns of our own, other languages as ``dateparser`` finds them.

A pattern comes with the function that reads its matches. It has no repeated group, so that a search is linear in the
text. Whether a sentence looks back or ahead decides which Friday "on Friday" is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import islice
from typing import Final, Literal, TypeAlias

from dateparser.search import search_dates

from memloop.wire.memory import MOST_TIMES, NamedTime, Source
from memory_store.embedding.encoding import language_of, language_of_script
from memory_store.times import days as spans
from memory_store.times import meanings
from memory_store.times.days import ALONE, DATE, DAY, DECADES, MON, PHASE, POINT, UNIT, WD, YEAR, D, Days, N, Which

_AHEAD: Final = re.compile(
    r"\b(?:will|shall|going to|gonna|plan(?:s|ning)? (?:to|on|for)|hop(?:e|es|ing) to|want(?:s)? to|due"
    r"|upcoming|coming up|(?:am|is|are) (?:not )?\w+ing|deadline)\b|(?:'|\u2019)(?:ll|m going)\b|won(?:'|\u2019)t\b"
    r"|(?:'|\u2019)(?:re|s|m) (?:not )?\w+ing\b",
    re.IGNORECASE,
)
_IRREGULAR: Final = """
    was were had did went saw met got came took made gave told said thought found left felt kept began bought brought
    caught taught built sent spent lost won ran sang swam drank ate fell flew drove rode wrote spoke broke chose woke
    wore tore bore grew knew threw drew blew shook stood understood sat slept read heard held led fed fought paid laid
    sold stole froze rang sank shot shut hurt quit cut hit put let bit hid became born dreamt been gone seen done
    learnt burnt taken given
"""
_BACK: Final = re.compile(
    rf"\b(?:{'|'.join(_IRREGULAR.split())}|(?!(?:need|feed|seed|speed|indeed|hundred|breed|agreed|tired)\b)[a-z]{{2,20}}ed)\b",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[.!?\n](?=\s|$)")
_LOOKED_AT_CHARS: Final = 160


Tense: TypeAlias = Literal["past", "future"]


def tense(text: str, start: int, end: int, *, unmarked: Tense) -> Tense:
    """Return the tense of the sentence around a place in the text; ``unmarked`` if nothing in it shows one."""
    before = text[max(0, start - _LOOKED_AT_CHARS) : start]
    after = text[end : end + _LOOKED_AT_CHARS]
    *_, before = _SENTENCE_END.split(before)
    after, *_ = _SENTENCE_END.split(after, maxsplit=1)
    around = f"{before} {after}"
    if _AHEAD.search(around):
        return "future"
    return "past" if _BACK.search(around) else unmarked


Rule: TypeAlias = Callable[[re.Match[str], date, Which], Days | None]
"""The days of a match, relative to the day on which it was said and by the tense of its sentence."""


def _rule(pattern: str, rule: Rule) -> tuple[re.Pattern[str], Rule]:
    return re.compile(r"(?<![\w-])(?:(?P<prep>since|until|till|by)\s+)?" + pattern, re.IGNORECASE), rule


_AFTER_PREP = r"(?<=since\s)|(?<=until\s)|(?<=till\s)|(?<=by\s)"
_LAST_NEXT = r"(?P<which>last|past|this\s+coming|this|next|coming)"
RULES: Final = (
    _rule(
        rf"(?:from|between)\s+(?P<first>{POINT})\s*(?:to|until|till|and|through|-|\u2013)\s*(?P<last>{POINT})",
        meanings.range_days,
    ),
    _rule(rf"(?P<first>(?:{WD}))\s+(?:to|through|until)\s+(?P<last>(?:{WD}))\b", meanings.range_days),
    _rule(r"(?:on\s+)?(?P<date>\d{4}-\d\d-\d\d)(?![\d-])", meanings.numeric_days),
    _rule(rf"(?:on\s+)?(?P<date>\d\d?[/.]\d\d?[/.]{YEAR})(?!\d)", meanings.numeric_days),
    _rule(
        rf"(?:(?:in|at|during|around)\s+)?(?P<part>{PHASE})[\s-]+(?:(?P<of>the|this|last|next)\s+)?"
        rf"(?:(?P<unit>week|month|year)|(?P<point>(?:{MON})\b(?:\s+{YEAR}\b)?|{YEAR}))\b",
        meanings.part_days,
    ),
    _rule(rf"(?P<before>on\s+)?(?P<date>{DATE})", meanings.date_days),
    _rule(
        rf"(?:(?:in|during|for|of|around)\s+(?:the\s+month\s+of\s+)?(?!(?:{MON})\s+(?:and|or)\b)|(?P<which>last|this|next)\s+|{_AFTER_PREP})"
        rf"(?P<month>{MON})\b(?:,?\s+(?:of\s+)?(?P<year>{YEAR})\b)?(?!(?:'|\u2019)s)",
        meanings.month_days,
    ),
    _rule(rf"(?P<which>\b)(?P<month>{MON})\b,?\s+(?:of\s+)?(?P<year>{YEAR})\b", meanings.month_days),
    _rule(
        rf"(?:(?:in|during|over|for)\s+(?:the\s+)?|the\s+(?=\w+\s+of\s)|(?P<which>last|this|next)\s+|{_AFTER_PREP})"
        rf"(?P<season>{'|'.join(spans.SEASONS)})\b(?:\s+(?:of\s+)?(?P<year>{YEAR})\b)?",
        meanings.season_days,
    ),
    _rule(
        rf"(?:(?:on|at|for|over|around|before|after|during)\s+|(?P<which>last|this|next)\s+|{_AFTER_PREP})"
        rf"(?P<holiday>{'|'.join(name.replace(chr(39), '.') for name in spans.HOLIDAYS)})\b"
        rf"(?!\s+(?:tree|card|present|gift|song|cake|dinner)s?\b)(?:,?\s+(?:of\s+)?(?P<year>{YEAR})\b)?",
        meanings.holiday_days,
    ),
    _rule(
        rf"(?:for\s+|in\s+|over\s+)?(?:the\s+)?(?:last|past)\s+(?P<n>{N})\s+(?P<unit>day|week|month|year)s?\b",
        meanings.lately_days,
    ),
    _rule(rf"(?P<n>{N})\s+(?P<unit>{UNIT})s?\s+(?:ago|back)\b", meanings.ago_days),
    _rule(rf"in\s+(?P<n>{N})\s+(?P<unit>{UNIT})s?\b(?!(?:'|\u2019))", meanings.ahead_days),
    _rule(
        r"(?:(?:over|at|on|during)\s+)?(?:(?P<which>last|past|this|next)\s+weekend|the\s+(?P<beyond>weekend\s+before\s+last)"
        r"|(?:over|at|on|for|during)\s+the\s+weekend)\b",
        meanings.weekend_days,
    ),
    _rule(r"(?:on\s+)?the\s+(?P<unit>week|month|year)\s+(?P<side>before\s+last|after\s+next)\b", meanings.beyond_days),
    _rule(
        rf"(?P<lead>on\s+|{_LAST_NEXT}\s+|the\s+(?=\w+\s+(?:before|of)\s))?(?P<day>{WD})\b"
        rf"(?:\s+(?:of\s+)?(?P<week>last|this|next)\s+week\b|(?P<beyond>\s+before\s+last\b)|(?P<alone>{ALONE}))?",
        meanings.weekday_days,
    ),
    _rule(
        r"(?:(?P<when>earlier|later)\s+)?(?P<which>last|this|next|past)\s+(?P<unit>week|month|year)\b",
        meanings.unit_days,
    ),
    _rule(
        r"(?P<words>the\s+day\s+before\s+yesterday|the\s+day\s+after\s+tomorrow|the\s+other\s+day|yesterday|tomorrow"
        r"|last\s+night|tonight|today|this\s+(?:morning|afternoon|evening))\b",
        meanings.relative_days,
    ),
    _rule(
        rf"(?:on\s+)?the\s+(?P<nth>{D}(?:st|nd|rd|th))(?=\s*(?:[.,;!?)]|$)|\s+(?:I|we|he|she|they|you|it|there|my)\b)",
        meanings.nth_days,
    ),
    _rule(rf"(?:(?:in|during|of|around|from)\s+|{_AFTER_PREP})(?P<year>{YEAR})\b(?![-/.,:]?\d)", meanings.year_days),
    _rule(rf"the\s+(?P<decade>(?:1[89]|20)?\d0'?s|{'|'.join(DECADES)})\b", meanings.decade_days),
)


_RECURRING: Final = re.compile(r"\b(?:every|each|most|all|any|some)\s+(?:other\s+)?$", re.IGNORECASE)
_LOOK_BACK_CHARS: Final = 24
_MOST_TRIES: Final = 16
"""Of places that look like a time: each is read in up to 1 ms."""
_BY_PREPOSITION: Final[Mapping[str, Which]] = {"since": "past", "until": "future", "till": "future", "by": "future"}


def english(text: str, said: date, unmarked: Tense) -> Iterator[tuple[int, int, Days]]:
    """Yield where in the text a time stands, and its days; a place that one pattern has read is left to it."""
    taken = bytearray(len(text))
    tries = 0
    for pattern, rule in RULES:
        for match in pattern.finditer(text):
            if (tries := tries + 1) > _MOST_TRIES:
                return
            start, end = match.span()
            if any(taken[start:end]) or _RECURRING.search(text[max(0, start - _LOOK_BACK_CHARS) : start]):
                continue
            prep = (match["prep"] or "").lower()
            which = _BY_PREPOSITION.get(prep) or tense(text, start, end, unmarked=unmarked)
            try:
                found = rule(match, said, which)
            except (ValueError, OverflowError):  # no such day in the calendar, so no month or year inside it is meant
                taken[start:end] = b"\1" * (end - start)
                continue
            if found is None or found[0] > found[1]:
                continue
            taken[start:end] = b"\1" * (end - start)
            yield start, end, (found[0], max(found[1], said)) if prep == "since" else found


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
    found = _sure_times(memory, said_at)
    if found or len(sources) != 1:
        return found
    said = _sure_times(sources[0].content, sources[0].timestamp or said_at)
    return said if len(said) == 1 else ()  # of several, none is sure to be that of the memory


def _sure_times(text: str, said_at: datetime) -> tuple[NamedTime, ...]:
    """Return the times of a statement. No tense is read in other languages than English: "Freitag" alone is not sure
    to be the next one.
    """
    ahead = times_in(text, said_at)
    if not ahead or _language(text) is None:
        return ahead
    back = times_in(text, said_at, unmarked="past")
    return tuple(time for time in ahead if time in back)


def asked_for(question: str, asked_at: datetime) -> Sequence[NamedTime]:
    """Return the times that a question names. "Who comes on Friday?" may ask for the last or the next one: both count.

    "What is coming up?" asks for the next 31 days.
    """
    ahead = times_in(question, asked_at)  # most questions name none, so that one look is enough
    found = tuple(dict.fromkeys((*times_in(question, asked_at, unmarked="past"), *ahead))) if ahead else ()
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
    language = _language(text)
    if language is not None:
        return _foreign(text[:_MOST_FOREIGN_CHARS], _CODES.get(language), said_at, unmarked)
    found = sorted(english(text[:_MOST_CHARS], said, unmarked))
    return tuple(
        NamedTime(text=" ".join(text[start:end].split())[:_MOST_SAID_CHARS], start=days[0], end=days[1])
        for start, end, days in found[:MOST_TIMES]
    )


def _language(text: str) -> str | None:
    """Return the text's language, None for English."""
    words = [word.casefold() for word in islice((match.group() for match in _WORD.finditer(text[:_MOST_CHARS])), 64)]
    return language_of(words) or next(filter(None, map(language_of_script, words)), None)


def _foreign(text: str, code: str | None, said_at: datetime, unmarked: Tense) -> tuple[NamedTime, ...]:
    if code is None:
        return ()
    settings = {"RELATIVE_BASE": said_at.replace(tzinfo=None), "PREFER_DATES_FROM": unmarked}
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
