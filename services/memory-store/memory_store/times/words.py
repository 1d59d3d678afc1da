"""The English words of days, months and counts, and the patterns that are put together from them."""

from collections.abc import Mapping
from typing import Final

DAY_NAMES: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTH_NAMES: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
MONTHS: Final = {name: number for number, name in enumerate(MONTH_NAMES, 1)} | {
    name[:length]: number for number, name in enumerate(MONTH_NAMES, 1) for length in (3, 4) if name[:length] != "marc"
}
COUNTED: Final = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBERS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(COUNTED, 1)} | {
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "couple of": 2,
    "a couple": 2,
    "a few": 3,
    "several": 4,
}
VAGUE: Final = frozenset(("a couple of", "couple of", "a couple", "a few", "several"))
_NTH_NAMES: Final = (
    *("first", "second", "third", "fourth", "fifth"),
    *("sixth", "seventh", "eighth", "ninth", "tenth"),
)
ORDINALS: Final = {
    name: number
    for number, name in enumerate(
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"], 1
    )
}
DECADES: Final = {"twenties": 20, "thirties": 30, "fourties": 40, "forties": 40, "fifties": 50, "sixties": 60} | {
    "seventies": 70,
    "eighties": 80,
    "nineties": 90,
}
SLACK_DAYS: Final = {"day": (0, 1), "night": (0, 1), "week": (3, 7), "fortnight": (3, 7), "month": (10, 30)}
"""Of "two weeks ago", and of "a few weeks ago"."""
PARTS: Final = {"beginning": "start", "middle": "mid", "mid-": "mid"}

WD = "|".join(DAY_NAMES)
MON = "|".join(sorted(MONTHS, key=len, reverse=True))
YEAR = r"(?:1[89]|20)\d\d"
D = r"(?:3[01]|[12]\d|0?[1-9])"
NTH = rf"(?:{D}(?:st|nd|rd|th)|{'|'.join(ORDINALS)})"
N = "|".join(sorted(NUMBERS, key=len, reverse=True)) + r"|\d{1,3}|half an?"
UNIT = "day|night|weekend|week|fortnight|month|year"
DATE = (
    rf"(?:(?:the\s+)?(?:{NTH}|{D})\s+(?:of\s+)?(?:{MON})\b\.?(?:,?\s+{YEAR}\b)?"
    rf"|(?:{MON})\b\.?\s+(?:the\s+)?{D}(?:st|nd|rd|th)?\b(?!:)(?:,?\s+{YEAR}\b)?)"
)
POINT = rf"(?:{DATE}|(?:{WD})\b|(?:{MON})\b(?:\s+{YEAR}\b)?|(?:the\s+)?(?:{NTH}|{D})\b|{YEAR}\b)"
PHASE = r"early|mid|late|(?:the\s+)?(?:start|beginning|middle|end|(?:first|last) week|first half|second half)\s+of"
ALONE = r"(?=\s*(?:[.,;:!?)]|$|\n)|\s+(?:I|we|he|she|they|you|it|my|our|at|in|with|morning|afternoon|evening|night)\b)"
