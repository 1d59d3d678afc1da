"""The English phrases that name days, as patterns, each with the function that reads its matches.

A pattern has no repeated group, so that a search is linear in the text.

Whether a sentence looks back or ahead: it decides which Friday "on Friday" is.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Final, Literal, TypeAlias

from memory_store.times import days as spans
from memory_store.times import meanings
from memory_store.times.days import ALONE, DATE, DECADES, MON, PHASE, POINT, UNIT, WD, YEAR, D, Days, N, Which

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
