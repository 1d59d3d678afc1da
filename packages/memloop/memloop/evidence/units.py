"""What a number counts: units, currencies and per cent by one name each, and the words that multiply it."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Final

from pydantic import BaseModel

from memloop.evidence.language import Pattern, Tables, Words, WordSet


class _Base(BaseModel):
    """A unit that has prefixes, by their first letters."""

    prefixes: str
    names: Words


class _Units(Tables):
    """``equal`` is of which unit each is how many."""

    currencies: Words
    abbreviated: WordSet
    rates: WordSet
    alike: str
    points: Pattern
    per_cent: Pattern
    rate: Pattern
    bases: dict[str, _Base]
    prefixes: dict[str, Words]
    names: dict[str, Words]
    symbols: dict[str, str]
    degrees: dict[str, Words]
    powers: dict[int, Words]
    equal: dict[str, str]
    scales: dict[int, Words]


_TEXTS: Final = _Units.read("units")
SCALES: Final = {name: scale for scale, names in _TEXTS.scales.items() for name in names}


@lru_cache(maxsize=4096)
def bare(word: str) -> str:
    """Return a word in lower case and Latin letters without accents, as units are listed."""
    low = word.casefold()
    return low if low.isascii() or low > "ɏ" else re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", low))


_TIMES: Final = {
    prefix: Fraction(10) ** power for prefix, power in zip("nμmcdhkMG", (-9, -6, -3, -2, -1, 2, 3, 6, 9), strict=True)
}
_IN_BASE: Final = {
    prefix + base: (base, _TIMES.get(prefix, Fraction(1)))
    for base in ("m", "g", "l", "w", "wh", "v", "hz", "pa", "j")
    for prefix in ("", *_TEXTS.bases[base].prefixes)
} | {unit: (base, Fraction(times)) for unit, equal in _TEXTS.equal.items() for times, base in [equal.split()]}
"""Of which unit each is how many. Months, money and bytes are not: a month has no length, a rate changes."""
_QUANTITY: Final = re.compile(
    r"([-+±~≈<>≤≥]?)(?:(\d{1,15}(?:\.\d{1,15})?)(?:/(\d{1,9}))?|(\d{1,3}(?::\d\d){1,2}(?:\.\d{1,3})?))"
)
_CLOCKED: Final = re.compile(r"\d{1,3}:\d\d(?:(:\d\d)|\.\d{1,3})")


@lru_cache(maxsize=256)
def in_base(unit: str) -> tuple[str, Fraction] | None:
    """Return the unit that one is compared in, and how many of those it is; nothing where it is only itself."""
    over, _, by = unit.partition("/")
    if by:
        one, two = in_base(over), in_base(by)
        return (f"{one[0]}/{two[0]}", one[1] / two[1]) if one and two else None
    name, _, power = unit.partition("^")
    base = _IN_BASE.get(name)
    if not base or not power:
        return base
    times = base[1] ** int(power)
    return ("l", 1000 * times) if base[0] + power == "m3" else (f"{base[0]}^{power}", times)


@lru_cache(maxsize=4096)
def quantity(norm: str, unit: str) -> str:
    """Return a number and its unit as all that are equal are: ``1.2`` kg and ``1200`` g; empty without such a unit.

    ``2:21:08`` is hours, and ``1:42.07`` minutes.
    """
    if not unit and ":" in norm and (clocked := _CLOCKED.fullmatch(norm)):
        unit = "h" if clocked[1] else "min"
    base = in_base(unit) if unit else None
    found = _QUANTITY.fullmatch(norm) if base else None
    if not base or not found or (found[4] and unit not in ("h", "min")):
        return ""
    number = (
        sum(Fraction(part) / 60**place for place, part in enumerate(found[4].split(":")))
        if found[4]
        else Fraction(found[2]) / int(found[3] or 1)
    )
    return f"{found[1]}{number * base[1]} {base[0]}"


def _script(word: str) -> str:
    return unicodedata.name(word[0]).split()[0]


_LONG: Final = 3


def _is_symbol(name: str) -> bool:
    return (len(name) < _LONG and name < "\u1100") or name in _TEXTS.bases


def _units() -> Iterator[tuple[str, str]]:
    for base, its in _TEXTS.bases.items():
        for name in its.names:
            yield bare(name), base
            # mg and milligram, but not mgram
            for short in its.prefixes:
                for prefix in _TEXTS.prefixes[short]:
                    if _script(prefix) in (_script(name), "GREEK") and _is_symbol(prefix) == _is_symbol(name):
                        yield bare(prefix + name), short + base
    for unit, names in _TEXTS.names.items():
        yield from ((bare(name), unit) for name in names)


UNITS: Final = dict(_units())
MOST: Final = 10**18
"""Beyond it nothing multiplies a number."""
OF_MONEY: Final = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "t": 1_000_000_000_000}
"""Letters behind an amount of money, which behind other numbers are units."""
_CLAIMED_AS: Final = frozenset(
    (name, other) for pair in _TEXTS.alike.split(",") for name, other in (pair.split(), pair.split()[::-1])
) | {("°", "°c"), ("°", "°f")}
_POWERS: Final = {name: power for power, names in _TEXTS.powers.items() for name in names}
CURRENCIES: Final = _TEXTS.currencies


def any_of(names: Iterable[str]) -> str:
    """Return a pattern of any of the names, the longest first."""
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MARK: Final = re.compile(r"\s?([%٪‰$€£¥₹₽₩₺₴₪฿°])(?:\s?([CF])\b)?")
_NAME: Final = re.compile(
    rf"[ \u00a0'’-]?(?:(?:d['’]|de |di ))?(?:(?P<power>{any_of(_POWERS)})\.?\s?)?(?P<name>[^\W\d_]{{1,24}})(?![^\W\d_])"
    r"(?:\^?(?P<digit>[23])(?!\w)|[\s-](?P<behind>[^\W\d_]{4,14})(?![^\W\d_]))?",
    re.IGNORECASE,
)
_DEGREES: Final = {name: unit for unit, names in _TEXTS.degrees.items() for name in names}
_CJK_NAME: Final = re.compile(
    rf"\s?(?P<power>平方|立方|세제곱"
    rf"|제곱)?(?P<name>{any_of(name for name in UNITS if _CJK.match(name))})(?P<digit>)(?P<behind>)"
)
_SCALE: Final = re.compile(
    r"\s?((?![千兆](?:米|克|瓦|字节))[万萬만亿億억千천兆조百백])|[ \u00a0-]?([^\W\d_]{1,24})\b", re.IGNORECASE
)
_PRODUCTS: Final = frozenset((("N", "m"), ("kN", "m"), ("w", "h"), ("kw", "h"), ("Mw", "h"), ("Gw", "h")))
OF_TIME: Final = frozenset(("s", "min", "h", "day", "week", "month", "year"))
_TURKISH_IS: Final = re.compile(r"(?<=[^\W\d_]{3})[dt][iıu]r$")


def unit_named(name: str) -> str:
    """Return the unit of a name or sign; empty where it is none."""
    low = bare(name) if name != "på" else ""
    return _TEXTS.symbols.get(name) or UNITS.get(low) or UNITS.get(_TURKISH_IS.sub("", low), "")


def unit_behind(text: str, end: int) -> tuple[str, int]:
    """Return the unit that stands behind a number, and where it ends; an empty one where none does."""
    if found := _TEXTS.points.match(text, end):
        return "%-points", found.end()
    if found := _TEXTS.per_cent.match(text, end):
        return "%", found.end()
    if found := _MARK.match(text, end):
        return rated(UNITS[found[1]] + (found[2] or "").casefold(), text, found.end())
    found = _CJK_NAME.match(text, end) or _NAME.match(text, end)
    if found is None or not (unit := unit_named(found["name"])) or text.startswith("г.", found.start("name")):
        return "", end
    end = found.end()
    behind = bare(found["behind"] or "")
    power = found["digit"] or _POWERS.get(bare(found["power"] or ""))
    if behind in _DEGREES and unit in ("°", "grad"):
        unit = _DEGREES[behind]
    elif (unit, unit_named(behind)) in _PRODUCTS:
        unit += unit_named(behind)
    elif not power and behind in _POWERS:
        unit += f"^{_POWERS[behind]}"
    else:
        unit += f"^{power}" if power else ""
        end = found.end("digit" if found["digit"] else "name")
    return rated(unit, text, end)


def rated(unit: str, text: str, end: int) -> tuple[str, int]:
    """Return a unit with what it is counted by, and where that ends: ``km/h``, ``5 euros per month``."""
    rate = _TEXTS.rate.match(text, end) if unit not in ("", "×") else None
    by = unit_named(rate[1]) if rate else ""
    return (f"{unit}/{by}", rate.end()) if rate and by in _TEXTS.rates else (unit, end)


def scale_behind(text: str, end: int) -> tuple[int, int]:
    """Return how many times the words behind a number make it, ``3 mil millones``, and where they end."""
    scale = 1
    while scale < MOST and (found := _SCALE.match(text, end)) and (more := SCALES.get(found[1] or found[2].casefold())):
        scale, end = scale * more, found.end()
        end += text.startswith(".", end) and found[2] in _TEXTS.abbreviated
    return scale, end


def same_unit(claimed: str, found: str) -> bool:
    """Return whether a number that is found with one unit may be claimed with the other."""
    (one, _, by), (other, _, per) = claimed.partition("/"), found.partition("/")
    return not claimed or claimed == found or (by == per and (one, other) in _CLAIMED_AS)
