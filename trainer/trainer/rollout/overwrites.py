"""Classifies what one turn of a read did to the memory's hold on the answer.

    found            the memory holds more of the answer than before
    kept             it holds as much as before, and there was nothing to find
    missed           the turn's text holds the answer, and the memory still does not
    forgot           it lost the answer, and holds no other in its place
    took another's   it holds another word of the answer's form, from the turn's text
    invented         it holds another word of the answer's form that the turn's text does not

The last three are overwrite errors. A word's form is that of a number or of a name (a capital letter, and not in small
letters elsewhere); of answers of any other form only the loss is counted, since a paraphrase is full of words that no
text holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from memloop.scoring.lenient import word_recall

Change: TypeAlias = Literal["found", "kept", "missed", "forgot", "took another's", "invented"]
ERRORS: Final[tuple[Change, ...]] = ("forgot", "took another's", "invented")
_WORD = re.compile(r"\w+")


def change_of(before: str, after: str, *, text: str, question: str, golds: Sequence[str]) -> Change:
    """Return what a turn did that read ``text`` with the memory ``before`` and left the memory ``after``."""
    was, now = word_recall(before, golds), word_recall(after, golds)
    if now > was:
        return "found"
    told = _words(text)
    known = _words(" ".join((before, question, *golds)))
    small = {word for word in told | known if word.islower()}
    others = {word for word in _answers_like(golds, after) - known if word.lower() not in small}
    if others:
        return "took another's" if others & told else "invented"
    if now < was:
        return "forgot"
    return "missed" if word_recall(text, golds) > now else "kept"


def overwrite_shares(changes: Sequence[Change | None]) -> dict[str, float]:
    """Return metrics: the share of reading turns (those with a change) that missed, forgot, took or invented."""
    reads = [change for change in changes if change]
    return {
        f"memloop/{name}": reads.count(change) / max(1, len(reads))
        for name, change in (("missed", "missed"), *zip(("forgot", "took_anothers", "invented"), ERRORS, strict=True))
    }


def _answers_like(golds: Sequence[str], memory: str) -> set[str]:
    """Return the memory's words of the same form as a gold answer's words."""
    forms = {_form(word) for gold in golds for word in _WORD.findall(gold)} - {"other"}
    return {word for word in _words(memory) if _form(word) in forms}


def _form(word: str) -> Literal["number", "name", "other"]:
    if word.isdigit():
        return "number"
    return "name" if word[0].isupper() else "other"


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))
