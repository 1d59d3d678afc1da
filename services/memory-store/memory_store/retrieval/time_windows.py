"""Finds the times that a question names, without a model."""

import calendar
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

_COUNTED = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_NUMBERS = {word: number for number, word in enumerate(_COUNTED, 1)} | {"a": 1, "an": 1, "couple": 2}
_MONTHS = {
    name.casefold(): number for names in (calendar.month_name, calendar.month_abbr) for number, name in enumerate(names)
}
_DAYS_OF = {"day": 1, "week": 7, "month": 30, "year": 365}
_MONTH = "|".join(sorted(filter(None, _MONTHS), key=len, reverse=True))
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_AGO = re.compile(r"\b(\d{1,3}|" + "|".join(_NUMBERS) + r")\s+(?:of\s+)?(day|week|month|year)s?\s+ago\b")
_LAST = re.compile(r"\blast\s+(week|month|year)\b")
_NAMED = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<last>last\s+)?(?P<month>{_MONTH})\b\.?"
    r"(?:\s+(?P<day2>\d{1,2})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+(?P<year>\d{4}))?"
)
_BEFORE_A_DATE = re.compile(r"\b(?:in|since|during|of|early|late|mid)\s+$")
_LOOK_BACK_CHARS = 16
_YEAR = re.compile(r"\bin\s+((?:19|20)\d{2})\b")


_MOST_WINDOWS = 32
"""A question names few times; each is compared with every candidate."""


@dataclass(frozen=True, slots=True)
class Window:
    """A time that a question names, from ``start`` up to, but excluding, ``end``."""

    start: datetime
    end: datetime

    def holds(self, moment: datetime) -> bool:
        """Return whether the moment is inside."""
        return self.start <= moment < self.end


def windows(question: str, *, asked_at: datetime) -> list[Window]:
    """Return the times that the question names, relative to ``asked_at``; a month without a year is the latest such
    month.
    """
    text = question.casefold()
    found = (window for rule in _RULES for window in rule(text, asked_at) if window.start <= asked_at)
    return list(islice(found, _MOST_WINDOWS))


def _iso_days(text: str, asked_at: datetime) -> Iterator[Window]:
    del asked_at
    for year, month, day in _ISO.findall(text):
        yield from _day(int(year), int(month), int(day))


def _ago(text: str, asked_at: datetime) -> Iterator[Window]:
    """Yields the times so many units ago, half a unit more or less; yesterday; the last unit."""
    for number, unit in _AGO.findall(text):
        days = _DAYS_OF[unit]
        middle = asked_at - timedelta(days=days * (_NUMBERS.get(number) or int(number)))
        slack = timedelta(days=max(1.0, days / 2))
        yield Window(middle - slack, middle + slack)
    if re.search(r"\byesterday\b", text):
        yield _whole_day(asked_at - timedelta(days=1))
    for unit in _LAST.findall(text):
        yield Window(asked_at - timedelta(days=2 * _DAYS_OF[unit]), asked_at)


def _named_months(text: str, asked_at: datetime) -> Iterator[Window]:
    for match in _NAMED.finditer(text):
        month, day = _MONTHS[match["month"]], match["day"] or match["day2"]
        if match["month"] == "may" and not (day or match["year"] or match["last"] or _is_date(text, match.start())):
            continue  # the verb
        year = int(match["year"]) if match["year"] else _last_year_with(month, asked_at)
        yield from _day(year, month, int(day)) if day else _month(year, month)


def _is_date(text: str, start: int) -> bool:
    return bool(_BEFORE_A_DATE.search(text[max(0, start - _LOOK_BACK_CHARS) : start]))


def _years(text: str, asked_at: datetime) -> Iterator[Window]:
    del asked_at
    for year in _YEAR.findall(text):
        yield Window(datetime(int(year), 1, 1, tzinfo=UTC), datetime(int(year) + 1, 1, 1, tzinfo=UTC))


_RULES: Collection[Callable[[str, datetime], Iterator[Window]]] = (_iso_days, _ago, _named_months, _years)


def _last_year_with(month: int, asked_at: datetime) -> int:
    return asked_at.year if month <= asked_at.month else asked_at.year - 1


def _day(year: int, month: int, day: int) -> Iterator[Window]:
    if 1 <= month <= 12 and 1 <= year < 9999 and 1 <= day <= calendar.monthrange(year, month)[1]:
        yield _whole_day(datetime(year, month, day, tzinfo=UTC))


def _month(year: int, month: int) -> Iterator[Window]:
    if 1 <= year < 9999:
        after = (year + 1, 1) if month == 12 else (year, month + 1)
        yield Window(datetime(year, month, 1, tzinfo=UTC), datetime(*after, 1, tzinfo=UTC))


def _whole_day(moment: datetime) -> Window:
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return Window(start, start + timedelta(days=1))
