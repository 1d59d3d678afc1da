"""Values in a text: numbers, times of day, dates and versions, in one form however they are written.

``1,500`` is a thousand and a half where decimals have a point, and one and a half where they have a comma. A text shows
which it is by its other numbers (:func:`has_decimal_commas`); one that shows nothing has points.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

_MARK = r"[.,'’٬\u00a0\u202f ]"
_NUMBER = re.compile(
    rf"""(?<![\w^])(?<!\d[.,:/])
    (?P<money>(?:US|AU|CA|NZ|HK)?[$€£¥₹₽₩฿]\s?)?
    (?P<sign>(?<![\w)\]])[-−+±~≈<>≤≥]\s?(?=[\d.,$€£¥₹₽₩]))?
    (?P<inner>[$€£¥₹₽₩]\s?)?
    (?P<digits>\d{{1,3}}(?:{_MARK}\d{{3}})+(?![\d])(?:[.,]\d+)?|\d+(?:[.,:/-]\d+)*|(?<!\d)\.\d+)
    (?P<power>\^[-−]?\d+)?
    (?P<suffix>[^\W\d_]+)?""",
    re.VERBOSE,
)
_TIME = re.compile(
    r"""(?<![\w.,:/-])(?P<hour>[01]?\d|2[0-4])(?:[:.h](?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?
    \s?(?P<half>[ap])\.?\s?m\b\.?(?!\w)
    |(?<![\w.,:/-])(?P<hour24>[01]?\d|2[0-4])(?::|h)(?P<minute24>[0-5]\d)(?::(?P<second24>[0-5]\d))?(?![\w:/])""",
    re.VERBOSE | re.IGNORECASE,
)
_GROUPED = re.compile(rf"\d{{1,3}}(?:{_MARK}\d{{3}})+")
_COMMA_DECIMAL = re.compile(r"(?<![\d.,])\d+,(?:\d{1,2}|\d{4,})(?![\d.,]*\d)|\d\.\d{3},\d")
_POINT_DECIMAL = re.compile(r"(?<![\d.,])\d+\.(?:\d{1,2}|\d{4,})(?![\d.,]*\d)|\d,\d{3}\.\d|\d,\d{3},\d{3}")

# fmt: off
_UNITS = {name: unit for unit, names in {
    "%": "% ٪ percent pct prozent процент процента процентов パーセント 퍼센트",
    "‰": "‰", "°c": "℃ celsius", "°f": "℉ fahrenheit",
    "usd": "$ us$ usd dollar dollars dólar dólares dollaro dollari доллар доллара долларов ドル 美元 달러",
    "eur": "€ eur euro euros евро ユーロ 欧元 유로", "gbp": "£ gbp", "cny": "cny rmb yuan 元 人民币", "krw": "₩ krw 원",
    "jpy": "¥ jpy yen 円 日元 엔", "inr": "₹ inr rupee rupees", "rub": "₽ rub рубль рубля рублей",
    "km": "km kilometer kilometers kilometre kilometres kilómetros kilomètres chilometri 公里 キロ 킬로미터",
    "m": "m meter meters metre metres metros mètres metri", "cm": "cm centimeter centimeters centimetre centimetres",
    "mm": "mm millimeter millimeters millimetre millimetres", "mi": "mi mile miles", "ft": "ft foot feet",
    "kg": "kg kilo kilos kilogram kilograms", "g": "g gram grams", "mg": "mg milligram milligrams",
    "t": "t tonne tonnes", "lb": "lb lbs pound pounds", "oz": "oz ounce ounces",
    "l": "l liter liters litre litres litros litri", "ml": "ml milliliter milliliters millilitre millilitres",
    "h": "h hr hrs hour hours", "min": "min mins minute minutes", "s": "s sec secs second seconds",
    "ms": "ms millisecond milliseconds", "mph": "mph", "kmh": "kmh", "hz": "hz hertz", "w": "w watt watts",
    "k": "k thousand", "mio": "million millions mio millones millionen milhões", "bn": "bn billion billions milliarden",
    "day": "day days", "week": "week weeks", "month": "month months", "year": "year years",
}.items() for name in names.split()}
# fmt: on
_PER_CENT = re.compile(
    r"\s?(?:per|pour|por)\s?(?:cent|cento|ciento)\b|\s?(?=[%٪‰$€£¥₹₽₩°℃℉])[^\w\s](?:\s?[CF]\b)?", re.IGNORECASE
)
_WORD_BEHIND = re.compile(r"[ \u00a0-]?([^\W\d_]+)")
_CJK_UNITS = re.compile(
    r"\s?(公里|キロ|킬로미터|パーセント|퍼센트|ドル|美元|달러|ユーロ|欧元|유로|元|人民币|円|日元|엔|원)"
)


@dataclass(frozen=True, slots=True)
class Value:
    """``norm`` stands at ``start`` to ``end`` of the text; ``unit`` is what it counts, empty where nothing says so."""

    start: int
    end: int
    norm: str
    unit: str


def has_decimal_commas(text: str) -> bool:
    """Return whether the text's own numbers have a comma before their decimals."""
    return len(_COMMA_DECIMAL.findall(text)) > len(_POINT_DECIMAL.findall(text))


def values_in(text: str, *, commas: bool) -> Iterator[Value]:
    """Yield the values of a text in NFKC; ``commas`` says that its decimals have commas."""
    times = {found.start(): found for found in _TIME.finditer(text)}
    end = 0
    for found in _NUMBER.finditer(text):
        if found.start() < end:
            continue
        time = times.get(found.start("digits"))
        if time is None:
            value = _number(text, found, commas=commas)
        else:
            if time["half"]:
                hour = int(time["hour"]) % 12 + 12 * (time["half"].lower() == "p")
                minute, second = time["minute"], time["second"]
            else:
                hour, minute, second = int(time["hour24"]), time["minute24"], time["second24"]
            norm = f"{hour}:{minute or '00'}" + (f":{second}" if second else "")
            value = Value(time.start(), time.end(), norm, "")
        end = value.end
        yield value


def _number(text: str, found: re.Match[str], *, commas: bool) -> Value:
    digits, suffix, end = found["digits"], found["suffix"] or "", found.end()
    norm = _plain(digits, commas=commas)
    money = (found["money"] or found["inner"] or "").strip().lower()
    unit = _UNITS.get(money, money)
    if suffix == "s" or (suffix and suffix.casefold() not in _UNITS):
        norm += suffix.casefold()
    elif suffix:
        unit = _UNITS[suffix.casefold()]
    elif found["power"]:
        unit = found["power"]
    elif not unit:
        unit, end = _unit_behind(text, end)
    sign = (found["sign"] or "").strip().replace("−", "-").strip("+")
    return Value(found.start(), end, sign + norm, unit)


def _unit_behind(text: str, end: int) -> tuple[str, int]:
    if sign := _PER_CENT.match(text, end):
        name = re.sub(r"\s", "", sign[0]).casefold()
        return _UNITS.get(name, "%" if "ent" in name else name), sign.end()
    if named := _CJK_UNITS.match(text, end):
        return _UNITS[named[1]], named.end()
    word = _WORD_BEHIND.match(text, end)
    unit = _UNITS.get(word[1].casefold(), "") if word else ""
    return (unit, word.end()) if word and unit else ("", end)


def _plain(digits: str, *, commas: bool) -> str:
    """Return a number without marks between thousands, with a point before its decimals."""
    decimal, thousands = (",", ".") if commas else (".", ",")
    bare = re.sub("['’٬\u00a0\u202f ]", "", digits)
    marks = re.sub(r"\d", "", bare)
    if not marks:
        return bare
    if re.search(r"[:/-]", marks):
        return "-".join(part.lstrip("0") or "0" for part in re.split(r"[:/-]", bare)) if "-" in marks else bare
    last = marks[-1]
    if len(marks) > 1 and len(set(marks)) == 1 and not _GROUPED.fullmatch(digits):
        return bare  # a version, or a date
    if len(set(marks)) == 2 and marks.count(last) == 1:
        decimal, thousands = last, marks[0]
    elif len(marks) > 1:
        return bare.replace(last, "")
    elif not re.fullmatch(r"\d{1,3}[.,]\d{3}", bare) or bare.startswith("0"):
        decimal, thousands = last, ""
    whole = bare.replace(thousands, "") if thousands else bare
    return format(Decimal(whole.replace(decimal, ".")).normalize(), "f")
