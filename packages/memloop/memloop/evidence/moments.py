"""Dates and times of day, in one form however they are written: as the day, the month and the year, and in 24 hours.

Days and months are values of their own, so that ``in March 2024`` is found where the whole date stands. ``3/4/2024`` is
in April where the language of the text puts the day first; elsewhere it may be in March, and is compared as it stands.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from pydantic import BaseModel

from memloop.evidence.hanzi import DECIMALS, HOUR, NUMERAL, number_of
from memloop.evidence.language import Tables, Words, WordSet, filled
from memloop.evidence.numerals import NUMBERS
from memloop.evidence.units import CURRENCIES, any_of


class _Form(BaseModel):
    """A way to write a moment. ``holds``: a text has one only where it has one of these words or signs."""

    holds: str
    pattern: str


class _Moments(Tables):
    """Hours and months by their number; ``clock_times`` stand between words, perhaps before a part of the day."""

    day_parts: Words
    noons: Words
    of_the_next: WordSet
    before: WordSet
    months: dict[int, Words]
    short_months: dict[int, Words]
    eras: dict[str, int]
    hours: dict[int, Words]
    nth_hours: dict[str, Words]
    turkish_hours: dict[int, Words]
    counts: dict[int, Words]
    pieces: dict[str, str]
    dates: tuple[_Form, ...]
    times: tuple[_Form, ...]
    clock_times: tuple[_Form, ...]


def _by_word(table: Mapping[int, Words]) -> dict[str, int]:
    return {word: number for number, words in table.items() for word in words}


_TEXTS: Final = _Moments.read("moments")
_MONTHS, _SHORT = _by_word(_TEXTS.months), _by_word(_TEXTS.short_months)
_ROMAN: Final = _TEXTS.pieces["roman"].lower().split("|")
_MONTH_OF: Final = _MONTHS | _SHORT | {name: number for number, name in enumerate(_ROMAN, 1)}
_ROWS: Final = NUMBERS.from_two.values()
_HOURS: Final = (
    {word: number for row in _ROWS for number, word in enumerate(row[:18], 2) if word != "-"}
    | dict.fromkeys(NUMBERS.one, 1)
    | _by_word(_TEXTS.hours)
)
_NTH_HOURS: Final = {
    form: number
    for row in _TEXTS.nth_hours.values()
    for number, name in enumerate(row, 1)
    for form in (name, name.replace("ё", "е"))
}
_TURKISH_HOURS: Final = _by_word(_TEXTS.turkish_hours)
_MINUTES: Final = {
    word: number
    for rows, start, step, last in (
        (_ROWS, 2, 1, 18),
        (NUMBERS.tens.values(), 20, 10, 4),
        (NUMBERS.veinti.values(), 21, 1, 9),
    )
    for row in rows
    for number, word in zip(range(start, 60, step), row[:last], strict=False)
} | {"twenty-five": 25, "venticinque": 25}
_COUNTS: Final = _by_word(_TEXTS.counts)
_ENGLISH: Final = NUMBERS.from_two["english"]
_LISTS: Final = {
    "day_parts": _TEXTS.day_parts,
    "noons": _TEXTS.noons,
    "months": _MONTHS,
    "short_months": _SHORT,
    "month_names": (*_MONTHS, *_SHORT),
    "eras": _TEXTS.eras,
    "currencies": CURRENCIES,
    "hours": _HOURS | _NTH_HOURS,
    "hours_to_twelve": [word for word, hour in _HOURS.items() if hour in range(1, 13)],
    "nth_hours": _NTH_HOURS,
    "half_hours": ("пол", *(f"пол{form}" for form in _NTH_HOURS)),
    "polish_hours": _TEXTS.nth_hours["polish"],
    "turkish_hours": _TURKISH_HOURS,
    "dutch_hours": NUMBERS.from_two["dutch"][:11],
    "english_hours": _ENGLISH[:11],
    "minutes": _MINUTES,
    "english": _ENGLISH,
    "english_minutes": ("twenty-five", *_ENGLISH, *NUMBERS.tens["english"][:2]),
}
_PIECES: Final = (
    _TEXTS.pieces
    | {"numeral": NUMERAL, "decimals": DECIMALS, "cjk_hour": HOUR}
    | {name: any_of(words) for name, words in _LISTS.items()}
)
_HELD: Final = {name: " ".join(words) for name, words in _LISTS.items()}
_FORMS: Final = [
    (frozenset(filled(form.holds, _HELD).split()), form.pattern) for form in (*_TEXTS.dates, *_TEXTS.times)
] + [(frozenset(filled(form.holds, _HELD).split()), rf"(?<!\w){form.pattern}{{of_day}}") for form in _TEXTS.clock_times]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """At the first text that may hold the form: all of them take a third of a second, and most processes need none."""
    return re.compile(filled(pattern, _PIECES), re.IGNORECASE)


_DATE_LIKE: Final = re.compile(r"\d[-/.]\s?\d")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_NEEDS: Final = {
    "May": re.compile(
        r"\b(?:in|of|since|until|till|by|last|next|early|late|mid|from|before|after|during)[\s-]$", re.IGNORECASE
    ),
    "mai": re.compile(r"\b(?:en|de|au|du|début|fin|mi)[\s-]$", re.IGNORECASE),
}
"""What stands before a month that is another word too."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time of day from ``start`` to ``end`` of the text: its parts in order."""

    start: int
    end: int
    norms: tuple[str, ...]


def moments_in(text: str, *, day_first: bool) -> Iterator[Moment]:
    """Yield dates and times in order; the longest reading of those that begin at one place.

    ``day_first``: 3/4/2024 is in April. Without it that may be in March, and is no date.
    """
    low = text.casefold()
    # A form is looked for where it can be: most sentences have no date and no time
    held = {*_LETTERS.findall(low), *low, "1-1" if _DATE_LIKE.search(low) else ""}
    forms = [form for heads, form in _FORMS if not heads.isdisjoint(held)]
    matches = (each for form in forms for each in _compiled(form).finditer(text))
    found = [(each, norms) for each in matches if (norms := _parts(each, day_first=day_first))]
    end = 0
    for each, norms in sorted(found, key=lambda pair: (pair[0].start(), -pair[0].end())):
        if each.start() >= end:
            end = each.end()
            yield Moment(each.start(), end, norms)


def _parts(found: re.Match[str], *, day_first: bool) -> tuple[str, ...]:
    """Return the day, month and year, or the time; nothing where it is none."""
    parts = found.groupdict()
    if "hour" in parts or "noon" in parts:
        return (_time(found),)
    day, year, name = parts.get("day"), parts.get("year"), (parts.get("month") or "").rstrip(".")
    if era := parts.get("era"):
        year = str(_TEXTS.eras[era] + number_of(parts["of_era"].replace("元", "1")))
    number = number_of(parts["number"]) if parts.get("number") else _MONTH_OF.get(name.casefold())
    if parts.get("one"):
        one, two = int(parts["one"]), int(parts["two"])
        if not (0 < min(one, two) <= _MOST_MONTHS and max(one, two) <= _MOST_DAYS) or (
            not day_first and max(one, two) <= _MOST_MONTHS and one != two
        ):
            return ()
        number, day = (one, parts["two"]) if two > _MOST_MONTHS else (two, parts["one"])
    if name and not _is_month(found, name, alone=not day and not year):
        return ()
    named = (
        str(number_of(day)) if day else "",
        f"month-{number}" if number else "",
        str(number_of(year)) if year else "",
    )
    return tuple(part for part in named if part)


_MOST_MONTHS, _MOST_DAYS = 12, 31
_WORDS_TOO: Final = frozenset(("out", "set", "ago", "sept", "mar", "mag", "gen"))


def _is_month(found: re.Match[str], name: str, *, alone: bool) -> bool:
    if name in _WORDS_TOO and not found["month"].endswith(".") and not found.groupdict().get("year"):
        return False
    if name in ("may", "march", "august", "MAY") or (
        alone and name in ("Mars", "Mart", "marca", "Marca", "Maja", "Mei")
    ):
        return False
    needed = _NEEDS.get(name) if alone else None
    return needed is None or needed.search(found.string, max(0, found.start() - 8), found.start()) is not None


_HALF_DAY, _NIGHT = 12, 5
"""Hours of half a day, and until which it is night."""


def _time(found: re.Match[str]) -> str:
    parts = {name: part for name, part in found.groupdict().items() if part}
    if parts.keys() & {"noon", "midnight"}:
        parts["hour"] = "12" if "noon" in parts else "24"
    hour, minute = _clock(parts)
    is_evening = "night" in parts and _NIGHT <= hour < _HALF_DAY
    afternoon = "afternoon" in parts or parts.get("half", "") in ("p", "P") or is_evening
    if hour <= _HALF_DAY and afternoon:
        hour = hour % _HALF_DAY + _HALF_DAY
    elif hour <= _HALF_DAY and ("half" in parts or "morning" in parts or "night" in parts):
        hour %= _HALF_DAY
    return f"{hour % 24}:{minute:02d}" + (f":{parts['second']}" if "second" in parts else "")


def _clock(parts: Mapping[str, str]) -> tuple[int, int]:
    """Return hour and minute, also of ``half past eight``, ``halb neun``, ``nueve menos cuarto`` and ``八点一刻``."""
    word = parts.get("hour", parts.get("word", "two")).casefold()
    hour = _HOURS.get(word) or _NTH_HOURS.get(word) or _TURKISH_HOURS.get(word) or number_of(word)
    count, way = parts.get("count", "").casefold().removeprefix("a "), parts.get("way", "").casefold()
    if not count:
        fifteens = 15 * number_of(parts["fifteens"]) if "fifteens" in parts else 0
        minute = number_of(parts.get("minute", parts.get("late", "0")))
        return hour, 30 if "thirty" in parts else fifteens or minute
    minutes = next((minutes for begin, minutes in _COUNTS.items() if count.startswith(begin)), 0)
    minutes = minutes or _MINUTES.get(count) or int(count)
    is_before = way in _TEXTS.before
    if "next" in parts:  # fünf vor halb acht
        return (hour - 2) % _HALF_DAY + 1, 30 - minutes if is_before else 30 + minutes
    # halb neun, half negen, половина девятого; in English half nine is no time
    if is_before or (not way and count in _TEXTS.of_the_next):
        hour = hour - 1 if hour > _HALF_DAY else (hour - 2) % _HALF_DAY + 1
    return hour, 60 - minutes if is_before else minutes
