"""Dates and times of day, in one form however they are written: as the day, the month and the year, and in 24 hours.

Days and months are values of their own, so that ``in March 2024`` is found where the whole date stands. ``3/4/2024`` is
read as it stands: it is in March or in April.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from memloop.evidence.hanzi import NUMERAL, number_of
from memloop.evidence.number_words import FROM_TWO, ONE
from memloop.evidence.units import any_of

# fmt: off
_MONTHS: Final = {name: number for number, names in enumerate((
    "january januar jänner janvier enero gennaio janeiro январь января январе",
    "february februar février febrero febbraio fevereiro февраль февраля феврале",
    "march märz mars marzo março март марта марте", "april avril abril aprile апрель апреля апреле",
    "may mai mayo maggio maio май мая мае", "june juni juin junio giugno junho июнь июня июне",
    "july juli juillet julio luglio julho июль июля июле", "august août agosto август августа августе",
    "september septembre septiembre settembre setembro сентябрь сентября сентябре",
    "october oktober octobre octubre ottobre outubro октябрь октября октябре",
    "november novembre noviembre novembro ноябрь ноября ноябре",
    "december dezember décembre diciembre dicembre dezembro декабрь декабря декабре",
), 1) for name in names.split()}
_SHORT: Final = {name: number for number, names in enumerate(
    ("jan janv ene gen", "feb févr fev", "mar mär", "apr avr abr", "mag", "jun giu", "jul juil lug", "aug ago",
     "sep sept set", "oct okt ott out", "nov", "dec dez déc dic"), 1) for name in names.split()}
_AFTERNOON: Final = (
    "in the afternoon|in the evening|at night|nachmittags|abends|(?:de l['’]après-midi|du soir)|de la (?:tarde|noche)"
    "|(?:del|di) pomeriggio|(?:di|della) sera|da (?:tarde|noite)|вечера|дня"
)
_MORNING: Final = (
    "in the morning|morgens|vormittags|früh|du matin|de la (?:mañana|madrugada)|(?:del|di) mattin[oa]"
    "|da (?:manhã|madrugada)|утра|ночи"
)
_NOON: Final = "noon|midday|mittags?|midi|mediodía|mezzogiorno|meio-dia|полдень|正 ?午|정 ?오"
_MIDNIGHT: Final = "midnight|mitternacht|minuit|medianoche|mezzanotte|meia-noite|полночь"
# fmt: on
_MONTH: Final = rf"(?P<month>{any_of(_MONTHS)})"
_SHORT_MONTH: Final = rf"(?P<month>(?:{any_of(_MONTHS)})|(?:{any_of(_SHORT)})\b\.?)"
_DAY: Final = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_YEAR: Final = r"(?P<year>[12]\d{3})(?![\d.,:/-]\d)"
_ALONE: Final = r"(?<![\w.,:/$€£¥-])"
_ORDINAL: Final = r"(?:st|nd|rd|th|er|\.?[oaº]|-?го|\.)?"
_CJK_YEAR: Final = rf"(?P<year>[12]\d{{3}}|{NUMERAL}{{4}}) ?[年년]"
_CJK_MONTH: Final = rf"(?P<number>1[0-2]|0?[1-9]|{NUMERAL}{{1,2}}) ?[月월](?! ?[间間])"
_CJK_DAY: Final = rf"(?P<day>[12]\d|3[01]|0?[1-9]|{NUMERAL}{{1,3}}) ?[日号號일]"
_DAY_OF: Final = rf"{_ALONE}{_DAY}{_ORDINAL}(?:\s|-)?(?:(?:day )?of |de |di |d['’])?{_SHORT_MONTH}(?!\w)"
_NAMED_DATES: Final = (
    rf"{_DAY_OF}(?:,?(?:\s|-)(?:de |del |of |do )?{_YEAR})?",
    rf"(?<!\w){_SHORT_MONTH}\s{_DAY}(?:st|nd|rd|th)?(?![\w%°]|[.,:/-]\d)(?:,?\s{_YEAR})?",
    rf"(?<!\w){_SHORT_MONTH}\s(?:de |del |of )?{_YEAR}",
    rf"(?<![\w-]){_MONTH}(?!\w)",
)
_DATES: Final = (
    rf"{_ALONE}(?P<year>[12]\d{{3}})([-/.])(?P<number>0?[1-9]|1[0-2])\2{_DAY}(?![\w-]|[.,:/]\d)",
    rf"{_ALONE}{_DAY}\.\s?(?P<number>0?[1-9]|1[0-2])\.\s?{_YEAR}(?!\w)",
    rf"(?:{_CJK_YEAR} ?)?{_CJK_MONTH} ?(?:{_CJK_DAY})?",
    _CJK_YEAR,
)
_HOUR: Final = r"(?P<hour>[01]?\d|2[0-4])"
_MINUTE: Final = r"(?P<minute>[0-5]\d)"
_SECOND: Final = r"(?::(?P<second>[0-5]\d))?"
_DAY_PART: Final = rf"(?:(?P<afternoon>{_AFTERNOON})|(?P<morning>{_MORNING}))(?!\w)"
_O_CLOCK: Final = r"(?:\s?(?:uhr|h|heures?|часов|часа|час|o['’]clock))?"
_CJK_PART: Final = (
    "(?:(?P<morning>上 ?午|早 ?上|凌 ?晨|清 ?晨|午 ?前|오 ?전)|(?P<afternoon>下 ?午|晚 ?上|傍 ?晚|午 ?後|夜|오 ?후))"
)
_CJK_MINUTE: Final = rf"(?:(?P<thirty>半|반)|(?P<minute>\d\d?|{NUMERAL}{{1,3}}) ?[分분])"
_HOURS: Final = {
    word: number
    for row in (*FROM_TWO[:6], FROM_TWO[6])
    for number, word in enumerate(row.split()[:11], 2)
    if word != "-"
} | dict.fromkeys(ONE.split(), 1)
_HOUR_WORD: Final = rf"(?P<hour>\d{{1,2}}|{any_of(_HOURS)})"
_AT: Final = f"(?:{'|'.join(f'(?<={word} )' for word in ('las', 'la', 'alle', 'le', 'ore', 'às', 'as'))})"
_QUARTERS: Final = r"(?:(?:le|un|um|una)\s)?(?P<count>quart|demie?|cuarto|media|mezz[ao]|quarto|meia)(?!\w)"
_WAY: Final = r"(?P<way>et|y|e|moins|menos|meno)"
_CLOCK_TIMES: Final = (
    rf"(?<!\w)(?P<count>half|(?:a )?quarter)\s(?P<way>past|after|to|before)\s{_HOUR_WORD}(?!\w)",
    rf"(?<!\w)(?P<count>halb|viertel|dreiviertel)\s(?:(?P<way>vor|nach)\s)?{_HOUR_WORD}(?!\w)",
    rf"{_AT}{_HOUR_WORD}\s{_WAY}\s{_QUARTERS}",
    rf"(?<!\w){_HOUR_WORD}\sheures?\s{_WAY}\s{_QUARTERS}",
    rf"(?<!\w){_HOUR_WORD}\s(?:o['’]clock|uhr)(?!\w)",
)
_CLOCK_NAMES: Final = ("half", "quarter", "halb", "viertel", "demi", "cuarto", "media", "mezz", "meia", "clock", "uhr")
_NAMED_TIMES: Final = (rf"(?<!\w)(?:(?P<noon>{_NOON})|(?P<midnight>{_MIDNIGHT}))(?!\w)",)
_TIMES: Final = (
    rf"{_ALONE}{_HOUR}(?:[:.h]{_MINUTE}{_SECOND})?\s?(?P<half>[ap])\.?\s?m\b\.?(?!\w)",
    rf"{_ALONE}{_HOUR}(?:\s?[:.h]\s?{_MINUTE}{_SECOND})?{_O_CLOCK},?\s{_DAY_PART}",
    rf"{_ALONE}{_HOUR}(?:[:.]{_MINUTE})?\s?uhr(?:\s(?P<late>[0-5]\d))?(?!\w)",
    rf"{_ALONE}{_HOUR}(?::|\s?h\s?){_MINUTE}{_SECOND}(?![\w:/]|[.,]\d)",
    rf"{_CJK_PART}? ?(?P<hour>[01]?\d|2[0-4]|{NUMERAL}{{1,3}}) ?[点點時时시](?! ?[間间간]) ?{_CJK_MINUTE}?",
)


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to write moments, and what a text has that holds one: one of ``heads`` or, without any, a number."""

    pattern: re.Pattern[str]
    heads: frozenset[str]

    @classmethod
    def of(cls, pattern: str, names: Iterable[str] = ()) -> "_Form":
        return cls(re.compile(pattern, re.IGNORECASE), frozenset(name.replace(" ?", "")[:_HEAD] for name in names))


_HEAD: Final = 3
_MONTH_NAMES: Final = (*_MONTHS, *_SHORT)
_NOON_NAMES: Final = (*_NOON.split("|"), *_MIDNIGHT.split("|"))
_FORMS: Final = (
    *(_Form.of(pattern, _MONTH_NAMES) for pattern in _NAMED_DATES),
    *(_Form.of(pattern) for pattern in _DATES),
    *(_Form.of(pattern, _NOON_NAMES) for pattern in _NAMED_TIMES),
    *(_Form.of(pattern) for pattern in _TIMES),
    *(_Form.of(pattern, _CLOCK_NAMES) for pattern in _CLOCK_TIMES),
)
_NUMBERED: Final = re.compile(rf"\d|{NUMERAL}")
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


def moments_in(text: str) -> Iterator[Moment]:
    """Yield dates and times in order; the longest reading of those that begin at one place."""
    low, is_numbered = text.casefold(), _NUMBERED.search(text) is not None
    # A form is looked for where it can be: most sentences have no number, and no month
    forms = [form for form in _FORMS if (any(head in low for head in form.heads) if form.heads else is_numbered)]
    found = [(each, norms) for form in forms for each in form.pattern.finditer(text) if (norms := _parts(each))]
    end = 0
    for each, norms in sorted(found, key=lambda pair: (pair[0].start(), -pair[0].end())):
        if each.start() >= end:
            end = each.end()
            yield Moment(each.start(), end, norms)


def _parts(found: re.Match[str]) -> tuple[str, ...]:
    """Return the day, month and year, or the time; nothing where it is none."""
    parts = found.groupdict()
    if "hour" in parts or "noon" in parts:
        return (_time(found),)
    day, year, name = parts.get("day"), parts.get("year"), (parts.get("month") or "").rstrip(".")
    number = (
        number_of(parts["number"])
        if parts.get("number")
        else _MONTHS.get(name.casefold()) or _SHORT.get(name.casefold())
    )
    if name and not _is_month(found, name, alone=not day and not year):
        return ()
    named = (
        str(number_of(day)) if day else "",
        f"month-{number}" if number else "",
        str(number_of(year)) if year else "",
    )
    return tuple(part for part in named if part)


def _is_month(found: re.Match[str], name: str, *, alone: bool) -> bool:
    if name in ("may", "march", "august", "MAY") or (name == "Mars" and alone):
        return False
    needed = _NEEDS.get(name) if alone else None
    return needed is None or needed.search(found.string, max(0, found.start() - 8), found.start()) is not None


_HALF_DAY, _NIGHT = 12, 5
"""Hours of half a day, and until which it is night."""


def _time(found: re.Match[str]) -> str:
    parts = {name: part for name, part in found.groupdict().items() if part}
    if "hour" not in parts:
        return "12:00" if "noon" in parts else "0:00"
    if parts["hour"].casefold() in _HOURS or "count" in parts:
        return _clock(parts)
    hour, half, afternoon = number_of(parts["hour"]), parts.get("half", "").lower(), parts.get("afternoon", "").lower()
    is_night = hour < _NIGHT and afternoon.endswith(("night", "noche", "noite"))
    if hour <= _HALF_DAY and (half == "a" or "morning" in parts or is_night):
        hour %= _HALF_DAY
    elif hour <= _HALF_DAY and (half or afternoon):
        hour = hour % _HALF_DAY + _HALF_DAY
    minute = "30" if "thirty" in parts else parts.get("minute", parts.get("late", "0"))
    return f"{hour}:{number_of(minute):02d}" + (f":{parts['second']}" if "second" in parts else "")


def _clock(parts: Mapping[str, str]) -> str:
    """Return ``half past eight``, ``halb neun``, ``nueve menos cuarto`` and ``eight o'clock``."""
    hour = _HOURS.get(parts["hour"].casefold()) or int(parts["hour"])
    count, way = parts.get("count", "").casefold(), parts.get("way", "").casefold()
    minutes = (
        0
        if not count
        else 15
        if count.endswith("quarter") or count in _QUARTER
        else 45
        if count == "dreiviertel"
        else 30
    )
    is_german = count in ("halb", "viertel", "dreiviertel") and not way
    if way in _BEFORE:
        minutes = 60 - minutes
    before = is_german or way in _BEFORE
    return f"{(hour - 2) % 12 + 1 if before else hour}:{minutes:02d}"


_QUARTER: Final = frozenset(("viertel", "quart", "cuarto", "quarto"))
_BEFORE: Final = frozenset(("to", "before", "vor", "moins", "menos", "meno"))
