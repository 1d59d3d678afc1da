"""Rewards of a reading loop's final answer, by the scores that the evaluation uses (:mod:`memloop.scoring`).

strict      1 when the last box in the reply's last 300 characters equals a gold answer (MemAgent's training reward)
strict_sub  1 when that box contains the words of a gold answer
published_sub  1 when that box contains its letters, also within a word (MemReread's training reward)
em, f1      exact match and token F1 of the answer, in lenient form (slime-agentic)
sub_em      1 when the answer contains the words of a gold answer, in lenient form
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from memloop.loops.parsing.reading import parse_answer
from memloop.ports import Completion
from memloop.scoring.lenient import contains, exact_match, token_f1
from memloop.scoring.strict import published_contains, strict_contains, strict_score

AnswerScore: TypeAlias = Literal["strict", "strict_sub", "published_sub", "em", "f1", "sub_em"]
_Score: TypeAlias = Callable[[str, Sequence[str]], float]
_OF_REPLIES: Final[Mapping[str, _Score]] = {
    "strict": strict_score,
    "strict_sub": strict_contains,
    "published_sub": published_contains,
}
_OF_ANSWERS: Final[Mapping[str, _Score]] = {"em": exact_match, "f1": token_f1, "sub_em": contains}


def answer_reward(reply: str, golds: Sequence[str], *, score: AnswerScore = "strict") -> float:
    """Return the reward, 0 to 1, of the reply of the answer's turn. Raises ValueError without gold answers."""
    if not golds:
        raise ValueError("an answer without gold answers has no reward")
    if score in _OF_REPLIES:
        return _OF_REPLIES[score](reply, golds)
    return _OF_ANSWERS[score](parse_answer(Completion(content=reply)).text, golds)
