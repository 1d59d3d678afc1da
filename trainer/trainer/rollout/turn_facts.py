"""Derives each turn's facts in a session, for objectives that reward single turns (ReA-GRPO)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memloop.loops.steps import Answered, ChunkRead, Integrated, Judged
from trainer.objectives.step_rewards import REPEATED, StepReward, judge_step, memory_step, words_held
from trainer.rollout.overwrites import Change, change_of
from trainer.rollout.recording import Turn

_MARK = re.compile(r"</?confirmed>")


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """``kind`` is the step's name; ``step`` its reward, None for a turn that only the outcome rewards.

    ``change`` is what a read did to the memory (:mod:`trainer.rollout.overwrites`), None for other turns.
    """

    kind: str
    step: float | None = None
    change: Change | None = None


def facts_of(
    turns: Sequence[Turn],
    *,
    question: str = "",
    golds: Sequence[str] = (),
    empty_memory: str = "",
    step_reward: StepReward = "memory_gain",
) -> list[TurnFacts]:
    """Return the facts of each turn of a session, in order. The memory writer's turns have no step reward."""
    teller = _Teller(question, golds, empty_memory, step_reward)
    return [TurnFacts(type(turn.step).__name__, *teller.told(turn)) for turn in turns]


class _Teller:
    """Tracks the memories of a session: the root's, and the current pass's."""

    def __init__(self, question: str, golds: Sequence[str], empty_memory: str, reward: StepReward) -> None:
        self._golds, self._empty, self._reward = golds, empty_memory, reward
        self._asked = [question]
        self._root = self._current = empty_memory
        self._pass = 1

    def told(self, turn: Turn) -> tuple[float | None, Change | None]:
        """Return the turn's step reward and what it did to the memory."""
        if isinstance(turn.step, ChunkRead):
            return self._read(turn.step, _text(turn))
        return self._step_of(turn), None

    def _step_of(self, turn: Turn) -> float | None:
        match turn.step:
            case Integrated(memory=memory):
                before, self._root = self._root, memory
                return self._step(before, memory)
            case Answered(answer=answer) if self._reward == "words_held":
                return words_held(answer, self._golds)
            case Judged(verdict=verdict, query=query):
                reward = REPEATED if verdict == "repeated" else judge_step(query, self._asked)
                self._asked += [query] if query is not None else []
                return reward
            case _:
                return None

    def _read(self, step: ChunkRead, text: str) -> tuple[float, Change]:
        if step.pass_number != self._pass:
            self._pass, self._current = step.pass_number, self._empty
        before, self._current = self._current, step.memory
        if step.pass_number == 1:
            self._root = step.memory
        change = change_of(before, step.memory, text=text, question=step.question, golds=self._golds)
        return self._step(before, step.memory), change

    def _step(self, before: str, after: str) -> float:
        """Return the memory's reward; a gain is without the marks, whose letters would join the words beside them."""
        if self._reward == "words_held":
            return words_held(after, self._golds)
        return memory_step(_MARK.sub(" ", before), _MARK.sub(" ", after), self._golds)


def _text(turn: Turn) -> str:
    return "\n".join(message.text() for message in turn.prompt.messages)
