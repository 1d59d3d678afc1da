r"""The strict scores, used as rewards: the last ``\boxed`` near the reply's end must equal, or contain, a gold answer.

``strict_contains`` wants the words of the gold answer; ``published_contains``, as MemReread was trained, its letters,
so that ``\boxed{unknown}`` contains a gold ``no``.

Case, blanks, line breaks and the LaTeX of numbers do not count; articles, punctuation, ``\text{}`` and a bare ``%`` or
``$`` do. Source: the training rewards of MemAgent (arXiv 2507.02259; equal) and MemReread (arXiv 2605.10268; contain),
with the normal form of the hendrycks_math scorer.
"""

import re
from collections.abc import Callable, Iterable

from memloop.scoring.boxed import last_boxed
from memloop.scoring.whole_words import stands_in

TAIL_CHARS = 300

_DRESSING = re.compile(r"\\left|\\right|\^\\circ|\^\{\\circ\}|\\\$|\\%")
_FRACTION = re.compile(r"[td]frac")
_BARE_POINT = re.compile(r"(?<=[ {])\.")


def strict_score(reply: str, golds: Iterable[str]) -> float:
    """1.0 when the box in the last 300 characters equals a gold answer, else 0.0."""
    return same_answer(_boxed(reply), golds)


def strict_contains(reply: str, golds: Iterable[str]) -> float:
    """1.0 when the box in the last 300 characters contains the words of a gold answer, else 0.0."""
    said = " ".join(_plain(_boxed(reply)).split())
    return float(any(stands_in(" ".join(_plain(gold).split()), said) for gold in golds))


def published_contains(reply: str, golds: Iterable[str]) -> float:
    """1.0 when the box in the last 300 characters contains the letters of a gold answer, also within a word."""
    return _any(_boxed(reply), golds, lambda mine, gold: bool(gold) and gold in mine)


def same_answer(answer: str, golds: Iterable[str]) -> float:
    """1.0 when an answer without its box equals a gold answer, by the same normal form, else 0.0."""
    return _any(answer, golds, lambda mine, gold: mine == gold)


def undress(text: str) -> str:
    """Return the normal form: lower case, without blanks, line breaks and the LaTeX of numbers."""
    return _plain(text.replace("\n", "")).replace(" ", "")


def _plain(text: str) -> str:
    plain = text.lower().replace(r"\!", "").replace("\\\\", "\\")
    plain = _DRESSING.sub("", _FRACTION.sub("frac", plain))
    return _BARE_POINT.sub("0.", plain)


def _boxed(reply: str) -> str:
    return last_boxed(reply[-TAIL_CHARS:]) or ""


def _any(answer: str, golds: Iterable[str], fits: Callable[[str, str], bool]) -> float:
    mine = undress(answer)
    return float(bool(mine) and any(fits(mine, undress(gold)) for gold in golds))
