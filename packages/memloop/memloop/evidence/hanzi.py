"""Numbers in the signs of Chinese and Japanese, ``三百二十``, ``二零二一``, and in Korean: ``삼백이십``, ``다섯``."""

import re
from collections.abc import Iterator
from fractions import Fraction
from math import prod
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
_SECTIONS: Final = dict(zip("万萬만亿億억兆조", (10**4,) * 3 + (10**8,) * 3 + (10**12,) * 2, strict=True))
_FORMAL_DIGITS, _FORMAL_TIMES = "壹壱弌贰貳弐叁參参叄肆伍陆陸柒漆捌玖", "拾佰仟陌阡"
_FORMAL: Final = str.maketrans(_FORMAL_DIGITS + _FORMAL_TIMES, "一一一二二二三三三三四五六六七七八九十百千百千")
"""Signs that cannot be changed into others, for money."""
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
    r"(?= ?(?:[\s%.,)]|$|[명인개년월원번회층차위분分살배대장권도조항호]))"
)
_NATIVE_NUMBER: Final = (
    rf"(?<![가-힣])(?:[이삼사오육칠팔구]?백 ?)?"
    rf"(?:(?:{any_of(_NATIVE_TENS)})?(?:{any_of(_NATIVE)})|(?:{any_of(_NATIVE_TENS)}))"
    "(?= ?(?:시|명|개|번|마리|살|권|대|병|잔|장|달|사람|배|곳|그루|채|척|켤레|송이|가지|층|군데|표|석|건|칸|통|쌍|벌|줄"
    "|큰술|작은술|자루|그릇|접시|봉지|상자|포기|바퀴|차례)(?!가?운))"
)
_ANY: Final = "".join(sign for sign in (*_DIGITS, *_TIMES, *_SECTIONS) if sign < "가" and sign != "兆")
_NUMBER: Final = re.compile(
    rf"[{_FORMAL_DIGITS}](?=[{_FORMAL_TIMES}百千万萬亿億元圆圓円])[{_FORMAL_DIGITS}{_FORMAL_TIMES}{_ANY}]{{0,20}}"
    rf"|(?<!\d )(?<!\d)(?:(?!四 ?半|零 ?下|(?<=[一二三四五六七八九])[两兩])[{_ANY}]){{1,20}}(?:兆[{_ANY}]{{0,12}})?"
    rf"(?:{DECIMALS}[万萬亿億兆]{{0,2}})?|{_KOREAN_NUMBER}|{_NATIVE_NUMBER}"
)
HOUR: Final = rf"{NUMERAL}{{1,3}}|(?:열 ?)?(?:{any_of(_NATIVE)})|열"
PART: Final = re.compile(
    rf"(?P<of>\d{{1,6}}|[{_KOREAN}]{{1,4}}|{NUMERAL}{{1,4}}) ?(?:分 ?[之の]|분의) ?"
    rf"(?P<part>\d{{1,15}}(?:\.\d{{1,15}})?|{NUMERAL}{{1,12}}(?:{DECIMALS})?|[{_KOREAN}])"
    rf"|(?<![\d.])(?<!{_DIGIT})(?P<tenths>[1-9]|{_DIGIT}) ?(?:[割할]|成(?![立为為功员員长長本果交熟分]))"
    rf"(?: ?(?P<hundredths>[1-9]|{_DIGIT}) ?[分푼](?![钟之の]))?"
)
"""``三分之一`` is a third, ``百分之九十五`` is 95 per cent, ``九割五分`` too."""
_SCALED: Final = (
    r"(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15}(?:\.\d{1,15})?) ?"
    r"(?:[十百千万萬亿億兆십백천만억조](?!米|克|瓦|赫|字|帕|比)){1,2}"
)
_LAST: Final = r" ?(?:\d{1,4}|\d,\d{3})(?![\d.,]*\d)"
_MIXED: Final = re.compile(rf"(?<![\d.,])(?:{_SCALED}(?: ?{_SCALED}){{1,5}}(?:{_LAST})?|{_SCALED}{_LAST})")
"""``3万5千``, ``1억 2천만``."""
_BEFORE_ALL: Final = "\u3000"
_MIXED_PART: Final = re.compile(r"([\d,]+(?:\.\d+)?)|\S")


def numerals_in(text: str) -> Iterator[Numeral]:
    """Yield the numbers in signs, those with digits between them first."""
    if max(text, default="") > _BEFORE_ALL:
        yield from (Numeral(each.start(), each.end(), _mixed(each[0])) for each in _MIXED.finditer(text))
        yield from (Numeral(each.start(), each.end(), _text_of(each[0])) for each in _NUMBER.finditer(text))


def number_of(signs: str) -> int:
    """Return the number that signs or digits are."""
    signs = signs.replace(" ", "").translate(_FORMAL)
    if signs.isdecimal():
        return int(signs)
    head, hundred, tail = signs.rpartition("백")  # 백스물셋
    ten = next((ten for ten in _NATIVE_TENS if tail.startswith(ten)), "")
    rest = tail.removeprefix(ten)
    if ten or rest in _NATIVE:
        return _NATIVE_TENS.get(ten, 0) + _NATIVE.get(rest, 0) + (number_of(head + hundred) if hundred else 0)
    if all(sign in _DIGITS for sign in signs):
        return int("".join(str(_DIGITS[sign]) for sign in signs))
    return int(_sum([_DIGITS.get(sign, sign) for sign in signs]))


def _text_of(signs: str) -> str:
    """Return a number, perhaps with decimals: ``五点二``."""
    whole, _, decimals = signs.replace("點", "点").partition("点")
    digits = "".join(str(_DIGITS[sign]) for sign in decimals if sign in _DIGITS)
    scale = prod(_SECTIONS[sign] for sign in decimals if sign in _SECTIONS)
    return written(Fraction(f"{number_of(whole)}.{digits or 0}") * scale)


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
            # 万亿 multiplies all that stands before it, and 兆 is beyond what stands behind it
            more = total % 10**12 + section + number or 1
            total, section, number = total - total % 10**12 + more * _SECTIONS[part], Fraction(0), Fraction(0)
    return total + section + number


def part_of(found: re.Match[str]) -> tuple[str, str]:
    """Return the number of a ``PART``, and its unit: per cent or none."""
    if found["tenths"]:
        return str(10 * number_of(found["tenths"]) + number_of(found["hundredths"] or "0")), "%"
    part = found["part"] if "." in found["part"] else _text_of(found["part"])
    of = number_of(found["of"])
    if of == _TIMES["百"]:
        return part, "%"
    return (written(Fraction(part) / of), "") if of else (part, "")


def _mixed(text: str) -> str:
    return written(
        _sum([Fraction(each[1].replace(",", "")) if each[1] else each[0] for each in _MIXED_PART.finditer(text)])
    )
