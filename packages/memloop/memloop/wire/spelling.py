"""Shows a text as ASCII spells it, for matching alone: full-width letters, other digits, nothing invisible."""

import re
import unicodedata
from functools import cache
from itertools import chain
from typing import Final

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""Characters that take no place on a screen: joiners, marks of direction, variation selectors, tags."""
_HYPHENS: Final = "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
_CHANGED: Final = (range(0x80, 0x3400), range(0xA600, 0xAC00), range(0xF900, 0x20000), range(0xE0000, 0xE1000))
"""The rest of Unicode is ideographs and Hangul, which are their own spelling."""


@cache
def _spellings() -> dict[str, str]:
    """Return the spelling, of one character or none, of each character that has another one."""
    spelt = ((char, _spelling(char)) for char in map(chr, chain(*_CHANGED)))
    return {char: spelling for char, spelling in spelt if spelling != char and len(spelling) < 2}


def _spelling(char: str) -> str:
    if _UNSEEN.match(char):
        return ""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    return "-" if char in _HYPHENS else unicodedata.normalize("NFKC", char)


def folded(text: str) -> tuple[str, list[int] | None]:
    """Return the text folded, and the place in ``text`` of each of its characters; None where all are the same."""
    if text.isascii():
        return text, None
    spellings = _spellings()
    if spellings.keys().isdisjoint(text):
        return text, None
    shown = [spellings.get(char, char) for char in text]
    if all(shown):
        return "".join(shown), None
    return "".join(shown), [place for place, char in enumerate(shown) if char]
