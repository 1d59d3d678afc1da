r"""The score that the paper of a task prints, computed as its public code does, beside our own scores.

MemAgent (arXiv 2507.02259), RULER-HQA and RULER. For questions, the answer contains the first gold answer or is
contained in it, in lenient form; for RULER's other tasks, the share of references in it. Its tables were made with a
prompt that asks for "the answer is …", and only the text after it counts (``plain``). Its training and demo ask for a
box, and only its content counts (``boxed``). A reply of one form scores 0 in the other.
MemReread (arXiv 2605.10268): from the last ``\boxed`` on, the reply contains a gold answer, in any case for
2WikiMultiHopQA, and the first one to the letter for questions about a whole document.
"""

import re
import string
from collections.abc import Mapping

from evaluation.ruler.items import GLOBAL, QUESTION_ANSWERING, WIKI
from memloop.scoring.strict import answer_in_words, last_boxed


def published_scores(task: str, reply: str, golds: tuple[str, ...]) -> Mapping[str, float]:
    """Return the scores, 0 to 1, of a whole reply: ``published`` by its box and, for MemAgent's tasks,
    ``published_plain`` by the text after "the answer is".
    """
    if task in {WIKI, GLOBAL}:
        return {"published": float(_in_tail(task, reply.rpartition(r"\boxed")[2], golds))}
    spoken = reply.rpartition("</think>")[2].strip() or reply
    return {
        "published": _memagents(task, last_boxed(spoken), golds),
        "published_plain": _memagents(task, answer_in_words(spoken), golds),
    }


def _memagents(task: str, answer: str | None, golds: tuple[str, ...]) -> float:
    if not answer:
        return 0.0
    if task in QUESTION_ANSWERING:
        return float(_overlap(_squad_form(answer), _squad_form(golds[0])))
    return sum(gold.lower() in answer.lower() for gold in golds) / len(golds)


def _in_tail(task: str, tail: str, golds: tuple[str, ...]) -> bool:
    if task == GLOBAL:
        return golds[0] in tail
    return any(gold.lower() in tail.lower() for gold in golds)


def _squad_form(text: str) -> str:
    plain = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", plain).split())


def _overlap(mine: str, gold: str) -> bool:
    return bool(mine and gold) and (gold in mine or mine in gold)
