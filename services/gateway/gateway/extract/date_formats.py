"""Shows the days and times of a spreadsheet, which are numbers of days, by the tokens of their format codes."""

import re
from calendar import month_name
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from gateway.extract.number_places import Show, Token, plain

_BEYOND: Final = 2_958_466
"""The day after 9999-12-31."""
_FIRST_OF_MARCH: Final = 61
"""Day 60 of 1900 never was: a fault of Lotus 1-2-3 that spreadsheets keep."""
_DAYS_TO_1904: Final = 1462
_DAY_S: Final = 86_400
_LANGUAGE: Final = 0x3FF
_ENGLISH: Final = 9
_GREGORIAN: Final = (0, 1)
_NUMBER: Final = len("mm")
_MONTHS: Final = {3: "{0:%b}", 4: "{0:%B}", 5: "{2:.1}"}
_DAYS: Final = {3: "{0:%a}", 4: "{0:%A}"}
_ELSEWHERE: Final = frozenset("gab")
"""Begin eras, weekdays of East Asia and years of Buddha."""


def date_shower(tokens: Sequence[Token], language: str, *, is_1904: bool) -> Show:
    """Return what shows days by tokens; ``language`` is the code of a locale, or empty.

    A day before the first one is a number of days, unless days begin in 1904: then it has a minus.
    """
    fields = list(_with_minutes(tokens))
    elapsed = any(kind == "elapsed" for kind, _ in fields)
    decimals = max((len(text.partition(".")[2]) for kind, text in fields if kind == "date"), default=0)
    has_half = any(kind == "half" for kind, _ in fields)
    signs = {text[0] for kind, text in fields if kind == "date"}
    if not elapsed and _is_foreign(fields, language):
        form = " ".join(["{0:%Y-%m-%d}"] * bool(signs - set("hs")) + ["{0:%H:%M:%S}"] * bool(signs & set("hs")))
    else:
        form = " ".join("".join(_form(kind, text, has_half=has_half) for kind, text in fields).split())

    has_more = re.search(r"\{[1-6]", form) is not None

    def show(days: float) -> str:
        if abs(days) >= _BEYOND or not (is_1904 or elapsed or days >= 0):
            return plain(days)
        total_s = round(abs(days) * _DAY_S, decimals)
        whole_days = int(total_s // _DAY_S) + _DAYS_TO_1904 * is_1904
        moment = datetime(1899, 12, 30 if whole_days >= _FIRST_OF_MARCH else 31)  # noqa: DTZ001 - a cell has no zone
        moment += timedelta(days=whole_days, seconds=total_s % _DAY_S)
        more = tuple[int | str, ...]()
        if has_more:
            times = map(int, (total_s // 3600, total_s // 60, total_s))
            more = (moment.hour % 12 or 12, month_name[moment.month], f"{moment:%f}", *times)
        shown = form.format(moment, *more)
        return f"-{shown}" if days < 0 else shown

    return show


def _with_minutes(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens in small letters; an ``m`` behind hours or before seconds means minutes."""
    times = [text[0].lower() if kind in ("date", "elapsed") else "" for kind, text in tokens]
    for at, (kind, text) in enumerate(tokens):
        before, behind = "".join(times[:at])[-1:], "".join(times[at + 1 :])[:1]
        is_minute = kind == "date" and times[at] == "m" and (before == "h" or behind == "s")
        yield "minute" if is_minute else kind, text.lower() if times[at] else text


def _is_foreign(fields: Sequence[Token], language: str) -> bool:
    """Return whether a day is shown as in the viewer's country, in another calendar, or with names of a language."""
    if any(kind == "date" and text[0] in _ELSEWHERE for kind, text in fields):
        return True
    has_names = any(kind == "date" and text[0] in "md" and len(text) > _NUMBER for kind, text in fields)
    if not language:
        return False
    try:
        code = int(language, 16)
    except ValueError:
        return language.lower().startswith("x-sys") or (has_names and not language.lower().startswith("en"))
    if code & 0xFFFF in (0xF800, 0xF400) or code >> 16 & 0xFF not in _GREGORIAN:
        return True
    return has_names and code & _LANGUAGE not in (0, _ENGLISH)


def _form(kind: str, text: str, *, has_half: bool) -> str:
    """Return the replacement field for a token: of the moment, or of the numbers behind it in ``show``."""
    wide, sign = len(text), text[:1]
    if kind not in ("date", "minute", "half", "elapsed"):
        return text.replace("{", "{{").replace("}", "}}")
    if kind == "elapsed":
        return f"{{{'hms'.index(sign) + 4}:0{wide}}}"
    if kind == "half":
        return "{0:%p}"
    padded = f":0{min(wide, 2)}}}"
    if kind == "minute":
        return f"{{0.minute{padded}"
    match sign:
        case "y" | "e":
            return "{0:%y}" if text in ("y", "yy") else "{0.year:04}"
        case "m":
            return f"{{0.month{padded}" if wide <= _NUMBER else _MONTHS[min(wide, 5)]
        case "d":
            return f"{{0.day{padded}" if wide <= _NUMBER else _DAYS[min(wide, 4)]
        case "h":
            return f"{{1{padded}" if has_half else f"{{0.hour{padded}"
        case _:
            seconds, _, decimals = text.partition(".")
            tail = f".{{3:.{len(decimals)}}}" if decimals else ""
            return f"{{0.second:0{min(len(seconds), 2)}}}{tail}"
