"""Writes a number into the places of a format code: ``#,##0.00 "kg"``, ``000-0000``, ``0.0,,"M"``, ``0.00E+00``."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias

Show: TypeAlias = Callable[[float], str]
"""Returns the text of a number."""
Token: TypeAlias = tuple[str, str]
"""A sign of a code, with its kind."""

_DECIMALS: Final = -1
_POWER: Final = -2
_GENERAL: Final = -3
_RUN: Final = re.compile("(t*)w+d?(t*)")
"""Texts around places that stand side by side."""
_MOST_EXACT: Final = 1e13
_NUDGE: Final = 1 + 1e-15
"""Makes halves round away from zero, as the fifteen digits of a spreadsheet have them, where it changes no other."""


def plain(value: float) -> str:
    """Return a number with as many digits as a spreadsheet keeps."""
    return f"{value:.15g}"


@dataclass(slots=True)
class _Places:
    """The places of a code, as they are met: counts, the factor of percents and thousands, and what lies around."""

    digits: dict[str, str] = field(default_factory=lambda: {"whole": "", "decimals": "", "power": ""})
    layout: list[str | int] = field(default_factory=list[str | int])
    at: str = "whole"
    commas: int = 0
    grouped: bool = False
    percent: int = 0
    power_sign: str = ""

    def digit(self, place: str) -> None:
        """Take a place for a digit. Commas before it group thousands."""
        if self.at == "whole":
            self.grouped, self.commas = self.grouped or self.commas > 0, 0
            self.layout.append(len(self.digits["whole"]))
        elif not self.digits[self.at]:
            self.layout.append(_DECIMALS if self.at == "decimals" else _POWER)
        self.digits[self.at] += place

    def other(self, kind: str, text: str) -> None:
        """Take any other sign. Commas behind the last place divide by a thousand."""
        if kind == "power":
            self.at, self.power_sign = "power", text[1].strip("-")
        elif kind == "sign" and text == ",":
            self.commas += bool(self.digits["whole"])
        elif kind == "sign" and text == ".":
            self.at = "decimals" if self.at == "whole" else self.at
        else:
            self.percent += kind == "sign"
            self.layout.append(_GENERAL if kind == "general" else text)

    def written(self, value: float) -> str:
        """Return the number in its places."""
        number, most, power = value * self.factor, len(self.digits["decimals"]), ""
        if self.digits["power"]:
            number, exponent = _scaled(number, max(len(self.digits["whole"]), 1), most)
            power = f"E{'-' if exponent < 0 else self.power_sign}{abs(exponent):0{len(self.digits['power'])}}"
        exact = number * _NUDGE if number * 10.0**most < _MOST_EXACT else number
        whole, _, decimals = f"{exact:{',' if self.grouped else ''}.{most}f}".partition(".")
        least = self.digits["decimals"].rfind("0") + 1
        decimals = decimals[:least] + decimals[least:].rstrip("0")
        tails = {_DECIMALS: f".{decimals}" if decimals else "", _POWER: power, _GENERAL: plain(value)}
        wide = len(self.digits["whole"])
        padded = whole.removeprefix("0" * (whole == "0")).rjust(self.digits["whole"].count("0"), "0").rjust(wide)
        first = len(padded) - wide + 1  # the first place takes the digits that have no place of their own
        placed = [padded[:first].strip(), *(padded[at : at + 1].strip() for at in range(first, len(padded)))]
        parts = (part if isinstance(part, str) else tails[part] if part < 0 else placed[part] for part in self.layout)
        return " ".join("".join(parts).split())

    @property
    def factor(self) -> float:
        """Return how many times the number is shown."""
        return 100.0**self.percent / 1000.0**self.commas


def number_shower(tokens: Sequence[Token]) -> Show:
    """Return what writes numbers that are not negative into the places of these tokens."""
    places = _Places()
    for kind, text in tokens:
        places.digit(text) if kind == "digit" else places.other(kind, text)
    kinds = ("t" if isinstance(part, str) else "w" if part >= 0 else "gpd"[part] for part in places.layout)
    decimals, run = places.digits["decimals"], _RUN.fullmatch("".join(kinds))
    if run is None or "0" * len(decimals) != decimals or places.digits["whole"].count("0") != 1:
        return places.written
    before, behind = (map(str, places.layout[slice(*run.span(at))]) for at in (1, 2))
    before, behind = " ".join(f"{''.join(before)}\0{''.join(behind)}".split()).split("\0")
    form, limit = f"{',' if places.grouped else ''}.{len(decimals)}f", _MOST_EXACT / 10.0 ** len(decimals)
    factor = places.factor

    def show(value: float) -> str:
        number = value * factor
        return f"{before}{number * _NUDGE if number < limit else number:{form}}{behind}"

    return show


def _scaled(value: float, wide: int, decimals: int) -> tuple[float, int]:
    """Return a number as mantissa and power of ten; with more than one place the power is a multiple of their count."""
    if not value:
        return 0.0, 0
    exponent = math.floor(math.log10(value)) // wide * wide
    mantissa = float(f"{value / 10.0**exponent:.{decimals}f}")
    return (mantissa / 10**wide, exponent + wide) if mantissa >= 10**wide else (mantissa, exponent)


def fraction_shower(found: "re.Match[str]", before: str, behind: str) -> Show:
    """Return what writes numbers with a fraction: of the denominator that the code names, or the nearest one.

    ``found`` has the places of the whole, of the part above and of the part below.
    """
    has_whole, below = found[1] is not None, found[3]
    is_named = below.isdecimal() and below.strip("0") != ""
    most = int(below) if is_named else 10 ** len(below) - 1

    def show(value: float) -> str:
        exact = Fraction(value)
        above, under = (round(exact * most), most) if is_named else exact.limit_denominator(most).as_integer_ratio()
        whole, above = divmod(above, under) if has_whole else (0, above)
        parts = [f"{whole}"] if whole or not above else []
        parts += [f"{above}/{under}"] if above else []
        return " ".join(f"{before}{' '.join(parts)}{behind}".split())

    return show
