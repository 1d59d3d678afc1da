"""MemReread's step rewards: the effect of one turn on the memory (arXiv 2605.10268), and those of its public code.

    read, integrate   s = recall(new memory) − recall(old memory)     recall: the share of a gold answer's words held
    judge             s = −1 for a sub-question that was asked before, else 0
    answer            none: the outcome's reward covers it

The public code looks for the old memory by a pattern that does not match its own prompts, so that the old memory always
counts as empty (``words_held``):

    read, integrate, answer   s = the share of the gold answers' words that stand in the reply

Recall is :func:`memloop.scoring.lenient.word_recall`; :func:`memloop.loops.memreread.was_asked` compares queries, as
in the served loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal, TypeAlias

from memloop.loops.memreread import was_asked
from memloop.scoring.lenient import word_recall

StepReward: TypeAlias = Literal["memory_gain", "words_held"]
REPEATED = -1.0


def memory_step(before: str, after: str, golds: Sequence[str]) -> float:
    """Return the step reward of a turn that rewrote a memory: −1 to 1."""
    return word_recall(after, golds) - word_recall(before, golds)


def words_held(reply: str, golds: Sequence[str]) -> float:
    """Return the share of a gold answer's words that stand in the reply to the letter, 0 to 1, mean over the golds."""
    shares = [fmean(word in reply for word in gold.split()) if gold.split() else 0.0 for gold in golds]
    return fmean(shares) if shares else 0.0


def judge_step(query: str | None, asked: Iterable[str]) -> float:
    """Return the judge's step reward: −1 if ``query`` was asked before (the question itself counts), else 0."""
    return REPEATED if query is not None and was_asked(query, asked) else 0.0
