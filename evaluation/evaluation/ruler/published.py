r"""The score that the paper of a task prints, computed as its public code does, beside our own scores.

MemAgent (arXiv 2507.02259), RULER-HQA and RULER: only the content of ``\boxed{}`` counts. For questions, it contains
the first gold answer or is contained in it, in lenient form; for RULER's other tasks, the share of references in it.
MemReread (arXiv 2605.10268): from the last ``\boxed`` on, the reply contains a gold answer, in any case for
2WikiMultiHopQA, and the first one to the letter for questions about a whole document.
"""

import re
import string

from evaluation.ruler.items import GLOBAL, QUESTION_ANSWERING, WIKI
from memloop.scoring.boxed import last_boxed


def published_score(task: str, reply: str, golds: tuple[str, ...]) -> float:
    """Return the score, 0 to 1, of a whole reply."""
    if task in {WIKI, GLOBAL}:
        return float(_in_tail(task, reply.rpartition(r"\boxed")[2], golds))
    boxed = last_boxed(reply)
    if not boxed:
        return 0.0
    if task in QUESTION_ANSWERING:
        return float(_overlap(_squad_form(boxed), _squad_form(golds[0])))
    return sum(gold.lower() in boxed.lower() for gold in golds) / len(golds)


def _in_tail(task: str, tail: str, golds: tuple[str, ...]) -> bool:
    if task == GLOBAL:
        return golds[0] in tail
    return any(gold.lower() in tail.lower() for gold in golds)


def _squad_form(text: str) -> str:
    plain = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", plain).split())


def _overlap(mine: str, gold: str) -> bool:
    return bool(mine and gold) and (gold in mine or mine in gold)
