"""The days that a matched phrase means, relative to the day on which it was said and by the tense of its sentence."""

import re
from collections.abc import Mapping
from datetime import date, datetime, time

from dateparser.date import DateDataParser
from dateutil.relativedelta import relativedelta

from memory_store.times import days as spans
from memory_store.times.days import (
    DATE,
    DAY,
    DAY_NAMES,
    DECADES,
    MON,
    MONTHS,
    NTH,
    NUMBERS,
    ORDINALS,
    PARTS,
    SLACK_DAYS,
    VAGUE,
    WEEK,
    YEAR,
    D,
    Days,
    Which,
)


def _which(name: str | None, otherwise: Which) -> Which:
    known: Mapping[str, Which] = {"last": "last", "past": "last", "next": "next", "this": "this", "coming": "this"}
    return known[name.split()[-1].lower()] if name else otherwise


def _shifted(unit: str, said: date, count: int) -> Days:
    """Return the week, weekend, month or year so many after that of ``said``."""
    if unit == "month":
        return spans.month(*_year_and_month(said + relativedelta(months=count)))
    if unit == "year":
        return spans.year(said.year + count)
    return (spans.weekend if unit == "weekend" else spans.week)(said + WEEK * count)


def _year_and_month(day: date) -> tuple[int, int]:
    return day.year, day.month


def written(text: str, said: date, tense_of: Which) -> Days:
    """Return the day of a written date: ``7 May``, ``12/25/2024``. Raises ValueError where the calendar has none."""
    parser = DateDataParser(
        languages=["en"],
        settings={
            "RELATIVE_BASE": datetime.combine(said, time(12)),
            "PREFER_DATES_FROM": "past" if tense_of == "past" else "future",
            "STRICT_PARSING": False,
        },
    )
    found = parser.get_date_data(text).date_obj
    if found is None:
        raise ValueError(text)
    return spans.one(found.date())


def _point(text: str, said: date, which: Which) -> Days | None:
    """Return the days of one end of a range."""
    words = text.lower().removeprefix("the ").strip(" .")
    if words in DAY_NAMES:
        return spans.weekday(DAY_NAMES.index(words), said, which)
    if re.fullmatch(YEAR, words):
        return spans.year(int(words))
    name, _, number = words.partition(" ")
    if name in MONTHS and (not number or re.fullmatch(YEAR, number)):
        if number:
            return spans.month(int(number), MONTHS[name])
        return spans.yearly(lambda year: spans.month(year, MONTHS[name]), said, which)
    if re.fullmatch(DATE, words):
        first = words.split()[0]
        return written(words.replace(first, str(ORDINALS[first])) if first in ORDINALS else words, said, which)
    return None


def range_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    first, last = match["first"], match["last"]
    if re.fullmatch(rf"(?:the\s+)?(?:{NTH}|{D})", first, re.IGNORECASE):
        of = re.search(rf"\b(?:{MON})\b.*$", last, re.IGNORECASE)
        if of is None:
            return None
        first = re.sub(r"\D", "", first) + " " + of.group()
    end = _point(last, said, which)
    start = _point(first, end[0] if end and which == "past" and last.lower() not in DAY_NAMES else said, which)
    if start is None or end is None:
        return None
    if end[0] < start[0]:
        if last.lower() in DAY_NAMES:
            end = (end[0] + WEEK, end[1] + WEEK) if which != "past" else end
            start = start if end[0] >= start[0] else (start[0] - WEEK, start[1] - WEEK)
        else:
            start = (start[0] - relativedelta(years=1), start[1])
    return start[0], end[1]


def date_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    text = match["date"]
    name = re.search(r"\b(?:may|march|mar)\b", text)  # in small letters they are verbs more often
    if name and not re.search(YEAR, text) and not match["before"]:
        return None
    return _point(text, said, which) or written(text, said, which)


def numeric_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    text = match["date"]
    return spans.one(date.fromisoformat(text)) if "-" in text else written(text, said, which)


def part_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    name = re.sub(r"^the\s+|\s+of$", "", match["part"].lower())
    if match["unit"]:
        step = {"last": -1, "next": 1}.get((match["of"] or "").lower(), 0)
        whole = _shifted(match["unit"].lower(), said, step)
    else:
        whole = _point(match["point"], said, which)
    return spans.part(whole, PARTS.get(name, name)) if whole else None


def month_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    number = MONTHS[match["month"].lower()]
    if match["year"]:
        return spans.month(int(match["year"]), number)
    return spans.yearly(lambda year: spans.month(year, number), said, _which(match["which"], which))


def season_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    of = spans.season(match["season"].lower())
    if match["year"]:
        return of(int(match["year"]))
    return spans.yearly(of, said, _which(match["which"], which))


def holiday_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    of = spans.holiday(match["holiday"].lower().replace("\u2019", "'"))
    return of(int(match["year"])) if match["year"] else spans.yearly(of, said, _which(match["which"], which))


def weekend_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    near = [spans.weekend(said + WEEK * number) for number in range(-3, 3)]
    first, last = spans.chosen(near, said, "last")
    if match["beyond"]:
        return first - WEEK, last - WEEK
    named = (match["which"] or "").lower()
    if named in ("this", "next"):
        return _shifted("weekend", said, int(named == "next"))
    return (first, last) if named else spans.chosen(near, said, which)


def unit_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    """Last, this or next week, month or year; earlier or later in it; the one before last or after next."""
    del which
    unit, named = match["unit"].lower(), match["which"].lower()
    step = {"last": -1, "past": -1, "next": 1}.get(named, 0)
    start, end = _shifted(unit, said, step)
    if match["when"]:
        return (start, max(start, said)) if match["when"].lower() == "earlier" else (min(said, end), end)
    return start, end


def beyond_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    del which
    return _shifted(match["unit"].lower(), said, -2 if match["side"].lower() == "before last" else 2)


def _count(text: str) -> tuple[int, bool]:
    words = " ".join(text.lower().split())
    return NUMBERS.get(words) or (int(words) if words.isdecimal() else 1), words in VAGUE


def _around(said: date, sign: int, count: str, unit: str) -> Days:
    """Return the days so many units away, with the slack that people mean."""
    number, vague = _count(count)
    if count.lower().startswith("half"):
        number, unit = {"year": (6, "month"), "month": (2, "week")}.get(unit, (1, unit))
    if unit == "weekend":
        near = [spans.weekend(said + WEEK * one) for one in range(-2, 3)]
        first, last = spans.chosen(near, said, "last" if sign < 0 else "next")
        return first + WEEK * sign * (number - 1), last + WEEK * sign * (number - 1)
    if unit == "year":
        return spans.year(said.year + sign * number)
    if unit == "month":
        middle = said + relativedelta(months=sign * number)
    else:
        middle = said + DAY * (sign * number * {"week": 7, "fortnight": 14}.get(unit, 1))
    slack = DAY * SLACK_DAYS[unit][vague]
    first, last = middle - slack, middle + slack
    return (first, min(last, said - DAY)) if sign < 0 else (max(first, said + DAY), last)


def ago_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    del which
    return _around(said, -1, match["n"], match["unit"].lower())


def ahead_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    return None if which == "past" else _around(said, 1, match["n"], match["unit"].lower())


def lately_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    """The last three weeks, up to ``said``."""
    del which
    number, _ = _count(match["n"])
    unit = match["unit"].lower()
    known = {"day": DAY * number, "week": WEEK * number, "month": relativedelta(months=number)}
    return said - known.get(unit, relativedelta(years=number)), said


def weekday_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    number = DAY_NAMES.index(match["day"].lower())
    if not (match["lead"] or match["prep"] or match["week"] or match["alone"] is not None):
        return None  # a Sunday roast
    if match["week"]:
        step = {"last": -1, "next": 1}.get(match["week"].lower(), 0)
        return spans.one(spans.week(said + WEEK * step)[0] + DAY * number)
    if match["beyond"]:
        return spans.one(spans.weekday(number, said, "last")[0] - WEEK)
    named = " ".join((match["which"] or "").lower().split())
    if named.startswith("this") and not named.endswith("coming") and which == "past":
        return spans.one(spans.week(said)[0] + DAY * number)
    return spans.weekday(number, said, _which(named.removeprefix("the ") or None, which))


def relative_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    del which
    words = " ".join(match["words"].lower().split())
    if words == "the other day":
        return said - WEEK, said - DAY
    shifts = {
        "the day before yesterday": -2,
        "the day after tomorrow": 2,
        "yesterday": -1,
        "last night": -1,
        "tomorrow": 1,
    }
    return spans.one(said + DAY * shifts.get(words, 0))


def nth_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    number = int(re.sub(r"\D", "", match["nth"]))
    near: list[Days] = []
    for step in (-2, -1, 0, 1, 2):
        first, last = spans.month(*_year_and_month(said + relativedelta(months=step)))
        if number <= last.day:
            near.append(spans.one(first.replace(day=number)))
    return spans.chosen(near, said, which)


def year_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    del said, which
    return spans.year(int(match["year"]))


def decade_days(match: re.Match[str], said: date, which: Which) -> Days | None:
    del which
    words = match["decade"].lower().replace("'", "").rstrip("s")
    number = DECADES.get(match["decade"].lower()) if not words.isdecimal() else int(words)
    if number is None:
        return None
    if number < 100:
        number += 2000 if 2000 + number <= said.year else 1900
    return date(number, 1, 1), date(number + 9, 12, 31)
