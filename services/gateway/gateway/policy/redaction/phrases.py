"""Leaves out the sentences that hold a phrase which is never kept. Time grows in proportion to the text."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_END: Final = re.compile(r"(?<=[.!?。！？])\s++|(?<=[。！？])|\n++")
_BLANKS: Final = re.compile(r"\s{2,}+")
_BLANK: Final = re.compile(r"\s")
_SPACED_SCRIPTS: Final = 0x0E00
"""Scripts below write blanks between words; Thai, Chinese, Japanese and Korean endings do not."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """The phrases, in lower case with single blanks."""

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
        flat = _flat(text)
        places = [place for phrase in self.phrases for place in _places(phrase, flat)]
        if not places:
            return []
        # The places in the flat text behind which blanks are missing, and how many are missing up to there
        cuts, shifts = list[int](), [0]
        for run in _BLANKS.finditer(text):
            cuts.append(run.start() - shifts[-1] + 1)
            shifts.append(shifts[-1] + run.end() - run.start() - 1)
        return sorted(
            (start + shifts[bisect_right(cuts, start)], end + shifts[bisect_right(cuts, end - 1)])
            for start, end in places
        )


@lru_cache(maxsize=256)
def refusals_of(phrases: tuple[str, ...]) -> Refusals | None:
    """Return the phrases ready to be found; None without any. Case and the width of blanks do not matter."""
    return Refusals(tuple(dict.fromkeys(_flat(phrase) for phrase in phrases))) if phrases else None


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
    return (beside.isalnum() or beside == "_") and edge.isalnum() and ord(edge) < _SPACED_SCRIPTS


def _flat(text: str) -> str:
    """Return the text in lower case, letter by letter, with single blanks."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    return _BLANK.sub(" ", _BLANKS.sub(" ", lowered.replace("ς", "σ")))
