"""Compares a sentence with a statement by their words, their order, and the words that must match exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from memloop.evidence.words import Word, words_of

_COVERAGE = 0.85
_AROUND = 2
"""Words before and after the matching ones in which a negation still belongs to them."""


@dataclass(frozen=True)
class Claim:
    """What must be found: words in order."""

    words: tuple[Word, ...]

    @classmethod
    def of(cls, text: str, *, commas: bool = False) -> "Claim":
        """Build the claim of a text; ``commas`` says that its decimals have commas."""
        return cls(words_of(text, commas=commas))

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """Its words without function words."""
        return tuple(word for word in self.words if word.content)

    @cached_property
    def anchors(self) -> tuple[str, ...]:
        """Its numbers and names, in order."""
        return tuple(word.norm for word in self.content if word.anchor)

    @cached_property
    def probes(self) -> tuple[str, ...]:
        """What a text that supports it must contain, folded: its names and the digits of whole numbers, else a stem."""
        names = (word.probe for word in self.content if word.anchor and word.probe)
        stems = (word.stem for word in self.content if not word.is_value)
        return tuple(names) or (max(stems, key=len, default=""),)


def supports(sentence: Sequence[Word], claim: Claim) -> bool:
    """Return whether the sentence supports the claim.

    All anchors are there, values in the claim's order and with the unit that it gives them, and 85 % of the content
    words (all, when they are few); both or none are negated, and both or none in the passive; and where the sentence
    names others too, the claim's anchors stand next to one another in it, so that no number is given to another name.
    """
    if not claim.content or len(sentence) < _COVERAGE * len(claim.content):
        return False
    if not set(claim.anchors) <= {word.norm for word in sentence}:
        return False
    found = {(word.norm, word.unit) for word in sentence}
    if any(word.unit and (word.norm, word.unit) not in found for word in claim.words):
        return False
    values = [word.norm for word in claim.words if word.is_value]
    if len(aligned(values, [word.norm for word in sentence])) < len(values):
        return False
    places = aligned([word.stem for word in claim.content], [word.stem for word in sentence])
    if len(places) < _COVERAGE * len(claim.content):
        return False
    region = sentence[max(0, places[0] - _AROUND) : places[-1] + 1 + _AROUND]
    return _same_sense(region, claim.words) and _anchors_stand_together(sentence, claim)


def _same_sense(region: Sequence[Word], claimed: Sequence[Word]) -> bool:
    def sense(words: Sequence[Word]) -> tuple[bool, bool]:
        return any(word.negates for word in words), any(word.norm == "by" for word in words)

    return sense(region) == sense(claimed)


def _anchors_stand_together(sentence: Sequence[Word], claim: Claim) -> bool:
    wanted = list(claim.anchors)
    norms = {word.norm for word in claim.words}
    named = [word.norm for word in sentence if (word.anchor and word.content) or word.norm in wanted]
    if all(name in norms for name in named):
        return True
    runs = range(len(named) - len(wanted) + 1)
    return any(named[start : start + len(wanted)] == wanted for start in runs)


def aligned(wanted: Sequence[str], found: Sequence[str]) -> list[int]:
    """Return the places in ``found`` of a longest common subsequence of both."""
    rows = [[0] * (len(found) + 1) for _ in range(len(wanted) + 1)]
    for i in range(len(wanted) - 1, -1, -1):
        for j in range(len(found) - 1, -1, -1):
            same = wanted[i] == found[j]
            rows[i][j] = rows[i + 1][j + 1] + 1 if same else max(rows[i + 1][j], rows[i][j + 1])
    places: list[int] = []
    i = j = 0
    while i < len(wanted) and j < len(found):
        if wanted[i] == found[j]:
            places.append(j)
            i, j = i + 1, j + 1
        elif rows[i + 1][j] >= rows[i][j + 1]:
            i += 1
        else:
            j += 1
    return places
