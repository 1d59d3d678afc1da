"""Numbers in the signs of Chinese and Japanese: ``三百二十``, ``二零二一``, ``一万``."""

import re
from fractions import Fraction
from typing import Final

from memloop.evidence.numerals import written

_DIGITS: Final = {
    sign: number
    for number, signs in enumerate(["〇零", "一", "二两兩", "三", "四", "五", "六", "七", "八", "九"])
    for sign in signs
}
_TIMES: Final = {"十": 10, "百": 100, "千": 1000}
_SECTIONS: Final = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
NUMERAL: Final = f"[{''.join((*_DIGITS, *_TIMES))}]"
PART: Final = re.compile(rf"(?P<of>{NUMERAL}{{1,4}})分之 ?(?P<part>\d{{1,15}}(?:\.\d{{1,15}})?|{NUMERAL}{{1,12}})")
"""``三分之一`` is a third, ``百分之九十五`` is 95 per cent."""
MIXED: Final = re.compile(r"(?<![\d.,])(\d{1,15}(?:\.\d{1,15})?) ?([万萬亿億]) ?(\d{1,4}) ?([万萬千百]?)(?![\d.,])")
"""``3万5千``."""
NUMBER: Final = re.compile(f"[{''.join((*_DIGITS, *_TIMES, *_SECTIONS))}]{{1,20}}")


def number_of(signs: str) -> int:
    """Return the number that signs or digits are."""
    if signs.isdecimal():
        return int(signs)
    if all(sign in _DIGITS for sign in signs):
        return int("".join(str(_DIGITS[sign]) for sign in signs))
    total = section = digit = 0
    for sign in signs:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign in _TIMES:
            section, digit = section + (digit or 1) * _TIMES[sign], 0
        elif sign in "万萬":
            total, section, digit = total + (section + digit or 1) * _SECTIONS[sign], 0, 0
        else:
            total, section, digit = (total + section + digit or 1) * _SECTIONS[sign], 0, 0
    return total + section + digit


def part_of(found: re.Match[str]) -> tuple[str, str]:
    """Return the number of a ``PART``, and its unit: per cent or none."""
    part = found["part"] if "." in found["part"] else str(number_of(found["part"]))
    of = number_of(found["of"])
    return (part, "%") if of == _TIMES["百"] else (written(Fraction(part) / of), "")


def mixed(found: re.Match[str]) -> str:
    """Return the number of a ``MIXED``."""
    scales = _TIMES | _SECTIONS | {"": 1}
    return written(Fraction(found[1]) * scales[found[2]] + int(found[3]) * scales[found[4]])
