"""Numbers in the signs of Chinese and Japanese: ``三百二十``, ``二零二一``, ``一万``."""

import re
from typing import Final

_DIGITS: Final = {
    sign: number
    for number, signs in enumerate(["〇零", "一", "二两兩", "三", "四", "五", "六", "七", "八", "九"])
    for sign in signs
}
_TIMES: Final = {"十": 10, "百": 100, "千": 1000}
_SECTIONS: Final = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
NUMERAL: Final = f"[{''.join((*_DIGITS, *_TIMES))}]"
NUMBER: Final = re.compile(f"[{''.join((*_DIGITS, *_TIMES, *_SECTIONS))}]+")


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
