"""Spans of days around a day: weeks, weekends, months, seasons, holidays. Weeks begin on Monday.

Below them: the English words of days, months and counts, and the patterns that are put together from them.
"""

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Final, Literal, TypeAlias

from dateutil.easter import easter
from dateutil.relativedelta import relativedelta

Days: TypeAlias = tuple[date, date]
"""The first and the last day."""
Which: TypeAlias = Literal["last", "this", "next", "past", "future"]
"""Which of repeated spans is meant. ``past`` and ``future`` are the tense of a sentence that says no more."""

DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(days=7)
SEASONS: Final[Mapping[str, int]] = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first of the three months, in the north."""
_HOLIDAYS: Final[Mapping[str, tuple[int, int]]] = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "boxing day": (12, 26),
    "new year's eve": (12, 31),
    "new years eve": (12, 31),
    "new year's day": (1, 1),
    "new year's": (1, 1),
    "valentine's day": (2, 14),
    "halloween": (10, 31),
}
HOLIDAYS: Final = (*_HOLIDAYS, "thanksgiving", "easter")


def one(day: date) -> Days:
    return day, day


def week(day: date) -> Days:
    monday = day - DAY * day.weekday()
    return monday, monday + DAY * 6


def weekend(day: date) -> Days:
    """Return the Saturday and Sunday of the day's week."""
    _, sunday = week(day)
    return sunday - DAY, sunday


def month(year: int, number: int) -> Days:
    return date(year, number, 1), date(year, number, monthrange(year, number)[1])


def year(number: int) -> Days:
    return date(number, 1, 1), date(number, 12, 31)


def season(name: str) -> Callable[[int], Days]:
    """Return the season of a year: a winter is that which begins in it."""

    def of(number: int) -> Days:
        begin = date(number, SEASONS[name], 1)
        return begin, begin + relativedelta(months=3) - DAY

    return of


def holiday(name: str) -> Callable[[int], Days]:
    def of(number: int) -> Days:
        if name == "easter":
            return one(easter(number))
        if name == "thanksgiving":
            first = date(number, 11, 1)
            return one(first + DAY * ((3 - first.weekday()) % 7 + 21))
        return one(date(number, *_HOLIDAYS[name]))

    return of


def yearly(of: Callable[[int], Days], said: date, which: Which) -> Days:
    """Choose among the spans of the years around ``said``.

    Raises ValueError and OverflowError where a year has no such day.
    """
    near: list[Days] = []
    for number in range(max(1, said.year - 4), min(9998, said.year + 4) + 1):
        try:
            near.append(of(number))
        except ValueError:  # 29 February
            continue
    if which == "this":
        return of(said.year)
    return chosen(near, said, which)


def chosen(near: list[Days], said: date, which: Which) -> Days:
    """Choose among spans in order: the last that is over or has begun, or the next that has not begun or ended.

    Raises ValueError where there is none.
    """
    if which in ("last", "past"):
        back = [days for days in near if (days[1] if which == "last" else days[0]) < said + DAY * (which == "past")]
        if back:
            return back[-1]
    else:
        ahead = [days for days in near if (days[0] > said if which == "next" else days[1] >= said)]
        if ahead:
            return ahead[0]
    raise ValueError(which)


def weekday(number: int, said: date, which: Which) -> Days:
    """Return the nearest such day before or after ``said``; the "next" one is that of the next week."""
    if which == "next":
        return one(week(said)[0] + WEEK + DAY * number)
    if which in ("last", "past"):
        return one(said - DAY * ((said.weekday() - number - 1) % 7 + 1))
    return one(said + DAY * ((number - said.weekday() - 1) % 7 + 1))


def part(days: Days, name: str) -> Days:
    """Return a part of a span: ``early``, ``mid``, ``late``, ``start``, ``end``, ``first half`` or ``second half``."""
    start, end = days
    length = (end - start).days + 1
    edge = 1 / 4 if length <= 31 else 1 / 12
    bounds = {
        "early": (0.0, 1 / 3),
        "mid": (1 / 3, 2 / 3),
        "late": (2 / 3, 1.0),
        "start": (0.0, edge),
        "end": (1 - edge, 1.0),
        "first half": (0.0, 1 / 2),
        "second half": (1 / 2, 1.0),
        "first week": (0.0, 7 / length),
        "last week": (1 - 7 / length, 1.0),
    }
    low, high = bounds[name]
    return start + DAY * round(low * length), start + DAY * (max(1, round(high * length)) - 1)


DAY_NAMES: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTH_NAMES: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
MONTHS: Final = {name: number for number, name in enumerate(MONTH_NAMES, 1)} | {
    name[:length]: number for number, name in enumerate(MONTH_NAMES, 1) for length in (3, 4) if name[:length] != "marc"
}
COUNTED: Final = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBERS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(COUNTED, 1)} | {
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "couple of": 2,
    "a couple": 2,
    "a few": 3,
    "several": 4,
}
VAGUE: Final = frozenset(("a couple of", "couple of", "a couple", "a few", "several"))
ORDINALS: Final = {
    name: number
    for number, name in enumerate(
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"], 1
    )
}
DECADES: Final = {"twenties": 20, "thirties": 30, "fourties": 40, "forties": 40, "fifties": 50, "sixties": 60} | {
    "seventies": 70,
    "eighties": 80,
    "nineties": 90,
}
SLACK_DAYS: Final = {"day": (0, 1), "night": (0, 1), "week": (3, 7), "fortnight": (3, 7), "month": (10, 30)}
"""Of "two weeks ago", and of "a few weeks ago"."""
PARTS: Final = {"beginning": "start", "middle": "mid", "mid-": "mid"}

WD = "|".join(DAY_NAMES)
MON = "|".join(sorted(MONTHS, key=len, reverse=True))
YEAR = r"(?:1[89]|20)\d\d"
D = r"(?:3[01]|[12]\d|0?[1-9])"
NTH = rf"(?:{D}(?:st|nd|rd|th)|{'|'.join(ORDINALS)})"
N = "|".join(sorted(NUMBERS, key=len, reverse=True)) + r"|\d{1,3}|half an?"
UNIT = "day|night|weekend|week|fortnight|month|year"
DATE = (
    rf"(?:(?:the\s+)?(?:{NTH}|{D})\s+(?:of\s+)?(?:{MON})\b\.?(?:,?\s+{YEAR}\b)?"
    rf"|(?:{MON})\b\.?\s+(?:the\s+)?{D}(?:st|nd|rd|th)?\b(?!:)(?:,?\s+{YEAR}\b)?)"
)
POINT = rf"(?:{DATE}|(?:{WD})\b|(?:{MON})\b(?:\s+{YEAR}\b)?|(?:the\s+)?(?:{NTH}|{D})\b|{YEAR}\b)"
PHASE = r"early|mid|late|(?:the\s+)?(?:start|beginning|middle|end|(?:first|last) week|first half|second half)\s+of"
ALONE = r"(?=\s*(?:[.,;:!?)]|$|\n)|\s+(?:I|we|he|she|they|you|it|my|our|at|in|with|morning|afternoon|evening|night)\b)"
