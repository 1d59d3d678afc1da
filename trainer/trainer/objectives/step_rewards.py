"""MemReread's step rewards: the effect of one turn on the memory (arXiv 2605.10268).

    read, integrate   s = recall(new memory) − recall(old memory)     recall: the share of a gold answer's words held
    judge             s = −1 for a sub-question that was asked before, else 0
    answer            none: the outcome's reward covers it

Recall is :func:`memloop.scoring.memory.word_recall`; :func:`memloop.scoring.questions.was_asked` compares queries, as
in the served loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memloop.scoring.memory import word_recall
from memloop.scoring.questions import was_asked

REPEATED = -1.0


def memory_step(before: str, after: str, golds: Sequence[str]) -> float:
    """Return the step reward of a turn that rewrote a memory: −1 to 1."""
    return word_recall(after, golds) - word_recall(before, golds)


def judge_step(query: str | None, asked: Iterable[str]) -> float:
    """Return the judge's step reward: −1 if ``query`` was asked before (the question itself counts), else 0."""
    return REPEATED if query is not None and was_asked(query, asked) else 0.0
