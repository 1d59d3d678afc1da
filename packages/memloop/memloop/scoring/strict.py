r"""The strict score, used as a reward: the last ``\boxed`` near the reply's end must equal a gold answer.

LaTeX dressing and white space do not count; case, articles, punctuation and a bare ``%`` do. Source: MemAgent
(arXiv 2507.02259), its reward, with the normal form of the hendrycks_math scorer.
"""

import re
from collections.abc import Iterable

from memloop.scoring.boxed import last_boxed

TAIL_CHARS = 300

_DRESSING = re.compile(r"\\left|\\right|\\!|\\,|\\;|\\\$|\$|\\ |\^\\circ|\^\{\\circ\}|\\%|\n")
_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|mbox)\{([^{}]*)\}")


def strict_score(reply: str, golds: Iterable[str]) -> float:
    """1.0 when the box in the last 300 characters equals a gold answer, else 0.0."""
    inside = last_boxed(reply[-TAIL_CHARS:])
    if inside is None:
        return 0.0
    return same_answer(inside, golds)


def same_answer(answer: str, golds: Iterable[str]) -> float:
    """1.0 when an answer without its box equals a gold answer, by the same normal form, else 0.0."""
    mine = undress(answer)
    return float(bool(mine) and any(mine == undress(gold) for gold in golds))


def undress(text: str) -> str:
    """Return the text without LaTeX dressing and without white space."""
    plain = _DRESSING.sub("", _WRAPPED.sub(r"\1", text)).replace("\\\\", "\\")
    plain = plain.replace("tfrac", "frac").replace("dfrac", "frac")
    return "".join(plain.split())
