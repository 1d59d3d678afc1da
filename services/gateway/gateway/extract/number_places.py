"""Writes a number into the places of a format code: ``#,##0.00 "kg"``, ``000-0000``, ``0.0,,"M"``, ``0.00E+00``."""

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

Show: TypeAlias = Callable[[float], str]
"""Returns the text of a number."""
Token: TypeAlias = tuple[str, str]
"""A sign of a code, with its kind."""

_DECIMALS: Final = -1
_POWER: Final = -2
_GENERAL: Final = -3
_MOST_EXACT: Final = 1e13
_NUDGE: Final = 1 + 1e-15
"""Makes halves round away from zero, as the fifteen digits of a spreadsheet have them, where it changes no other."""


def plain(value: float) -> str:
    """Return a number with as many digits as a spreadsheet keeps."""
    return f"{value:.15g}"


def number_shower(tokens: Sequence[Token]) -> Show:
    """Return what writes numbers that are not negative into the places of these tokens."""
    digits = {"whole": "", "decimals": "", "power": ""}
    layout, at, power_sign = list[str | int](), "whole", ""
    commas, is_grouped, percents = 0, False, 0
    for kind, text in tokens:
        if kind == "digit":
            if at == "whole":  # a comma before a place groups thousands
                is_grouped, commas = is_grouped or commas > 0, 0
                layout.append(len(digits["whole"]))
            elif not digits[at]:
                layout.append(_DECIMALS if at == "decimals" else _POWER)
            digits[at] += text
        elif kind == "power":
            at, power_sign = "power", text[1].strip("-")
        elif (kind, text) == ("sign", ","):  # behind the last place it divides by a thousand
            commas += bool(digits["whole"])
        elif (kind, text) == ("sign", "."):
            at = "decimals" if at == "whole" else at
        else:
            percents += kind == "sign"
            layout.append(_GENERAL if kind == "general" else text)
    wide, least_wide = len(digits["whole"]), digits["whole"].count("0")
    most, least = len(digits["decimals"]), digits["decimals"].rfind("0") + 1
    factor, form = 100.0**percents / 1000.0**commas, f"{',' if is_grouped else ''}.{most}f"
    limit = _MOST_EXACT / 10.0**most

    def show(value: float) -> str:
        number, power = value * factor, ""
        if digits["power"]:
            number, exponent = _scaled(number, max(wide, 1), most)
            power = f"E{'-' if exponent < 0 else power_sign}{abs(exponent):0{len(digits['power'])}}"
        whole, _, decimals = f"{number * _NUDGE if number < limit else number:{form}}".partition(".")
        decimals = decimals[:least] + decimals[least:].rstrip("0")
        tails = {_DECIMALS: f".{decimals}" if decimals else "", _POWER: power, _GENERAL: plain(value)}
        padded = whole.removeprefix("0" * (whole == "0")).rjust(least_wide, "0").rjust(wide)
        first = len(padded) - wide + 1  # the first place takes the digits that have no place of their own
        placed = [padded[:first].strip(), *(digit.strip() for digit in padded[first:])]
        parts = (part if isinstance(part, str) else tails[part] if part < 0 else placed[part] for part in layout)
        return " ".join("".join(parts).split())

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
