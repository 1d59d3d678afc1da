"""Rewards of a reading loop's final answer, by the scores that the evaluation uses (:mod:`memloop.scoring`).

strict     1 when the last box in the reply's last 300 characters equals a gold answer (MemAgent's training reward)
em, f1     exact match and token F1 of the answer, in lenient form (slime-agentic)
sub_em     1 when the answer contains a gold answer (MemAgent's test score)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from memloop.loops.parsing import parse_answer
from memloop.ports import Completion
from memloop.scoring.lenient import contains, exact_match, token_f1
from memloop.scoring.strict import strict_score

AnswerScore: TypeAlias = Literal["strict", "em", "f1", "sub_em"]
_LENIENT = {"em": exact_match, "f1": token_f1, "sub_em": contains}


def answer_reward(reply: str, golds: Sequence[str], *, score: AnswerScore = "strict") -> float:
    """Return the reward, 0 to 1, of the reply of the answer's turn. Raises ValueError without gold answers."""
    if not golds:
        raise ValueError("an answer without gold answers has no reward")
    if score == "strict":
        return strict_score(reply, golds)
    return _LENIENT[score](parse_answer(Completion(content=reply)).text, golds)
