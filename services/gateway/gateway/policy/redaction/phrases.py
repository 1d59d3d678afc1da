"""Leaves out the sentences that hold a phrase which is never kept. Time grows in proportion to the text."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_END: Final = re.compile(r"(?<=[.!?。！？])\s++|(?<=[。！？])|\n++")
_BLANK: Final = re.compile(r"\s")
_HIDDEN: Final = r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"
_MARK: Final = r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\u3099\u309a]"
_ODD: Final = re.compile(rf"[\s{_HIDDEN}]{{2,}}+|[Ii]\u0307|[^\x00-\x7f]{_MARK}{{0,30}}+")
"""What is not one letter of ASCII for another: runs of blanks and of what nobody sees, a dotted i that is two
characters, and every other character with the marks upon it, whose order varies. 30 is the most that Unicode's
stream-safe text has; the time to order more grows faster than their number."""
_ALIKE: Final = str.maketrans("\u2018\u2019\u201b\u2032\u02bc\u00b4\uff07\u2010\u2011", "'''''''--")
_SPACED_SCRIPTS: Final = 0x0E00
"""Scripts below write blanks between words; Thai, Chinese, Japanese and Korean endings do not."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """The phrases, flat."""

    phrases: tuple[str, ...]

    def sentences(self, text: str) -> list[tuple[int, int]]:
        """Return the places of the sentences that hold a phrase, in order."""
        hits = self._hits(text)
        if not hits:
            return []
        ends = [end.end() for end in _END.finditer(text)]
        found: list[tuple[int, int]] = []
        at = 0
        for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
            while at < len(hits) and hits[at][1] <= start:
                at += 1
            if at < len(hits) and hits[at][0] < end:
                found.append((start, end))
        return found

    def without(self, text: str) -> tuple[str, int]:
        """Return the text without those sentences, and their number."""
        refused = self.sentences(text)
        if not refused:
            return text, 0
        starts, ends = [0, *(end for _, end in refused)], [*(start for start, _ in refused), len(text)]
        return "".join(text[start:end] for start, end in zip(starts, ends, strict=True)).strip(), len(refused)

    def _hits(self, text: str) -> list[tuple[int, int]]:
        """Return the places of all phrases in the text, in order."""
        flat = _Flat.of(text)
        places = (place for phrase in self.phrases for place in _places(phrase, flat.text))
        return sorted((flat.source(start), flat.source(end - 1) + 1) for start, end in places)


@lru_cache(maxsize=256)
def refusals_of(phrases: tuple[str, ...]) -> Refusals | None:
    """Return the phrases ready to be found; None without any.

    Case, the width of blanks, the form of an apostrophe and characters that nobody sees do not matter; a phrase of
    nothing else is none.
    """
    flat = dict.fromkeys(_Flat.of(phrase).text.strip() for phrase in phrases)
    return Refusals(tuple(filter(None, flat))) if phrases else None


def _places(phrase: str, flat: str) -> Iterator[tuple[int, int]]:
    at = flat.find(phrase)
    while at >= 0:
        end = at + len(phrase)
        is_whole = not (_joins(flat[at - 1 : at], phrase[0]) or _joins(flat[end : end + 1], phrase[-1]))
        if is_whole:
            yield at, end
        at = flat.find(phrase, end if is_whole else at + 1)


def _joins(beside: str, edge: str) -> bool:
    """Return whether a phrase's edge is inside a word, in scripts that part words."""
    return bool(beside) and (_is_letter(beside) or beside == "_") and _is_letter(edge) and ord(edge) < _SPACED_SCRIPTS


def _is_letter(char: str) -> bool:
    """Return whether it is a letter, a digit, or a mark upon one."""
    return char.isalnum() or unicodedata.combining(char) > 0


@dataclass(frozen=True, slots=True)
class _Flat:
    """A text as phrases are compared, with the places in it (``flats``) that begin at known ones of the source."""

    text: str
    flats: list[int]
    sources: list[int]

    @classmethod
    def of(cls, text: str) -> "_Flat":
        """Fold case and forms, narrow blanks to one, and leave out what nobody sees."""
        pieces, flats, sources, at, length = list[str](), [0], [0], 0, 0
        for odd in _ODD.finditer(text):
            plain, folded = text[at : odd.start()], _folded(odd[0])
            pieces += [plain, folded]
            length += len(plain)
            flats += [length, length + len(folded)]
            sources += [odd.start(), odd.end()]
            at, length = odd.end(), length + len(folded)
        pieces.append(text[at:])
        sources.append(len(text))
        return cls(_BLANK.sub(" ", "".join(pieces).lower()), flats, sources)

    def source(self, place: int) -> int:
        """Return where in the source a place of the flat text is."""
        known = bisect_right(self.flats, place) - 1
        return min(
            self.sources[known] + place - self.flats[known], max(self.sources[known], self.sources[known + 1] - 1)
        )


def _folded(odd: str) -> str:
    if any(map(str.isspace, odd)):
        return " "
    plain = unicodedata.normalize("NFKD", odd.translate(_ALIKE)).casefold().replace("i\u0307", "i")
    return "".join(char for char in plain if unicodedata.category(char) != "Cf")
