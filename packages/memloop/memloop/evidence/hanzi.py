"""Numbers in the signs of Chinese and Japanese, ``三百二十``, ``二零二一``, and in Korean: ``삼백이십``, ``다섯``."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from memloop.evidence.numerals import Numeral, written
from memloop.evidence.units import any_of

_DIGITS: Final = {
    sign: number
    for number, signs in enumerate(
        ["〇零영공", "一일", "二两兩이", "三삼", "四사", "五오", "六육", "七칠", "八팔", "九구"]
    )
    for sign in signs
}
_TIMES: Final = dict(zip("十百千십백천", (10, 100, 1000) * 2, strict=True))
_SECTIONS: Final = dict(zip("万萬만亿億억", (10**4,) * 3 + (10**8,) * 3, strict=True))
_NATIVE: Final = {
    word: number
    for row in ("한 두 세 네 다섯 여섯 일곱 여덟 아홉", "하나 둘 셋 넷")
    for number, word in enumerate(row.split(), 1)
}
_NATIVE_TENS: Final = {
    word: 10 * number
    for number, words in enumerate(("열", "스물 스무", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔"), 1)
    for word in words.split()
}
_KOREAN: Final = "".join(sign for sign in (*_DIGITS, *_TIMES, *_SECTIONS) if sign >= "가")
NUMERAL: Final = f"[{''.join(sign for sign in (*_DIGITS, *_TIMES) if sign < '가')}]"
_DIGIT: Final = f"[{''.join(sign for sign in _DIGITS if sign < '가')}]"
DECIMALS: Final = rf"[点點]{_DIGIT}{{1,6}}(?!{NUMERAL}| ?[分刻])"
"""``三点五``, but not the time ``三点五分``."""
_KOREAN_NUMBER: Final = (
    rf"(?:(?<![가-힣])|(?<=제) ?)(?:[{_KOREAN}]{{0,12}}[만억] [{_KOREAN}]{{1,12}}|[{_KOREAN}]{{2,20}})"
    r"(?= ?(?:[\s%.,)]|$|[명인개년월원번회층차위분살배대장권도조항호]))"
)
_NATIVE_NUMBER: Final = (
    rf"(?<![가-힣])(?:(?:{any_of(_NATIVE_TENS)})?(?:{any_of(_NATIVE)})|(?:{any_of(_NATIVE_TENS)}))"
    "(?= ?(?:시|명|개|번|마리|살|권|대|병|잔|장|달|사람|배|곳|그루|채|척|켤레|송이|가지|층|군데)(?!가?운))"
)
_ANY: Final = "".join(sign for sign in (*_DIGITS, *_TIMES, *_SECTIONS) if sign < "가")
_NUMBER: Final = re.compile(
    rf"(?<!\d )(?<!\d)(?:(?!四 ?半|零 ?下)[{_ANY}]){{1,20}}(?:{DECIMALS})?|{_KOREAN_NUMBER}|{_NATIVE_NUMBER}"
)
HOUR: Final = rf"{NUMERAL}{{1,3}}|(?:열 ?)?(?:{any_of(_NATIVE)})|열"
PART: Final = re.compile(
    rf"(?P<of>\d{{1,6}}|[{_KOREAN}]{{1,4}}|{NUMERAL}{{1,4}}) ?(?:分 ?[之の]|분의) ?"
    rf"(?P<part>\d{{1,15}}(?:\.\d{{1,15}})?|{NUMERAL}{{1,12}}(?:{DECIMALS})?|[{_KOREAN}])"
)
"""``三分之一`` is a third, ``百分之九十五`` is 95 per cent."""
_SCALED: Final = r"\d{1,15}(?:\.\d{1,15})? ?(?:[十百千万萬亿億십백천만억](?!米|克|瓦)){1,2}"
_MIXED: Final = re.compile(
    rf"(?<![\d.,])(?:{_SCALED}(?: ?{_SCALED}){{1,5}}(?:\d{{1,4}}(?![\d.,]))?|{_SCALED} ?\d{{1,4}}(?![\d.,]))"
)
"""``3万5千``, ``1억 2천만``."""
_BEFORE_ALL: Final = "\u3000"
_MIXED_PART: Final = re.compile(r"(\d+(?:\.\d+)?)|\S")


def numerals_in(text: str) -> Iterator[Numeral]:
    """Yield the numbers in signs, those with digits between them first."""
    if max(text, default="") > _BEFORE_ALL:
        yield from (Numeral(each.start(), each.end(), _mixed(each[0])) for each in _MIXED.finditer(text))
        yield from (Numeral(each.start(), each.end(), _text_of(each[0])) for each in _NUMBER.finditer(text))


def number_of(signs: str) -> int:
    """Return the number that signs or digits are."""
    signs = signs.replace(" ", "")
    if signs.isdecimal():
        return int(signs)
    ten = next((ten for ten in _NATIVE_TENS if signs.startswith(ten)), "")
    rest = signs.removeprefix(ten)
    if ten or rest in _NATIVE:
        return _NATIVE_TENS.get(ten, 0) + _NATIVE.get(rest, 0)
    if all(sign in _DIGITS for sign in signs):
        return int("".join(str(_DIGITS[sign]) for sign in signs))
    return int(_sum([_DIGITS.get(sign, sign) for sign in signs]))


def _text_of(signs: str) -> str:
    """Return a number, perhaps with decimals: ``五点二``."""
    whole, *decimals = re.split("[点點]", signs)
    return ".".join((str(number_of(whole)), *("".join(str(_DIGITS[sign]) for sign in part) for part in decimals)))


def _sum(parts: list[int | Fraction | str]) -> Fraction:
    """Return the number that numbers and the signs that multiply them make."""
    total = section = number = Fraction(0)
    for part in parts:
        if not isinstance(part, str):
            number = Fraction(part)
        elif part in _TIMES:
            section, number = section + (number or 1) * _TIMES[part], Fraction(0)
        elif _SECTIONS[part] < 10**8:
            total, section, number = total + (section + number or 1) * _SECTIONS[part], Fraction(0), Fraction(0)
        else:
            total, section, number = (total + section + number or 1) * _SECTIONS[part], Fraction(0), Fraction(0)
    return total + section + number


def part_of(found: re.Match[str]) -> tuple[str, str]:
    """Return the number of a ``PART``, and its unit: per cent or none."""
    part = found["part"] if "." in found["part"] else _text_of(found["part"])
    of = number_of(found["of"])
    if of == _TIMES["百"]:
        return part, "%"
    return (written(Fraction(part) / of), "") if of else (part, "")


def _mixed(text: str) -> str:
    return written(_sum([Fraction(each[1]) if each[1] else each[0] for each in _MIXED_PART.finditer(text)]))
