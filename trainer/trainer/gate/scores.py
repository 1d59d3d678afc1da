"""Scores an answer, 0 to 1, by name. The first score of a loop decides unless another is named.

Reading: ``strict`` is MemAgent's training score of the gateway's answer (articles and punctuation count; the gateway
does not report whether the answer was boxed), ``em``, ``f1`` and ``sub_em`` are lenient. Memory writing: ``exact`` is
the gold decision with the gold memories, ``action`` the decision alone, ``facts`` the F1 of the stored memories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from memloop.scoring.lenient import contains, exact_match, token_f1
from memloop.scoring.strict import same_answer
from trainer.data.rows import AgentName
from trainer.decisions import is_decision
from trainer.gate.held_out import WRITER, Task
from trainer.objectives.memreader_reward import extraction_f1
from trainer.rollout.tasks import ReadTask

READING: Final = ("strict", "em", "f1", "sub_em")
WRITING: Final = ("exact", "action", "facts")


def scores_for(loop: AgentName) -> tuple[str, ...]:
    """Return the names of a loop's scores."""
    return WRITING if loop == WRITER else READING


def scores_of(task: Task, said: Sequence[str]) -> Mapping[str, float]:
    """Score an answer; all scores are 0 without one."""
    if isinstance(task, ReadTask):
        return _of_reading(said[0] if said else "", task.golds)
    if not said:
        return dict.fromkeys(WRITING, 0.0)
    return {
        "exact": float(is_decision(said, task.gold)),
        "action": float(said[0] == task.gold[0]),
        "facts": extraction_f1(said[1:], task.gold[1:]),
    }


def _of_reading(answer: str, golds: Sequence[str]) -> Mapping[str, float]:
    return {
        "strict": same_answer(answer, golds),
        "em": exact_match(answer, golds),
        "f1": token_f1(answer, golds),
        "sub_em": contains(answer, golds),
    }
