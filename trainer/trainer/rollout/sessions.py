"""Runs one loop for one row: the serving functions, on a recording model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memloop.loops.memagent import read_document
from memloop.loops.memreader import decide
from memloop.loops.memreread import reread_document
from memloop.loops.results import DecisionResult
from memloop.ports import Splitter
from memloop.profiles import Profile
from trainer.data.rows import AgentName
from trainer.decisions import decided_by, is_decision
from trainer.memories import HeldMemories
from trainer.objectives.answer_reward import answer_reward
from trainer.objectives.memreader_reward import Gold, memreader_reward
from trainer.rollout.recording import RecordingModel, Turn
from trainer.rollout.settings import LoopSettings
from trainer.rollout.tasks import DecideTask, ReadTask
from trainer.rollout.turn_facts import TurnFacts, facts_of


@dataclass(frozen=True, slots=True)
class Session:
    """A run's turns and its reward. ``nodes`` counts its reading passes (1 for the memory writer)."""

    turns: tuple[Turn, ...]
    facts: tuple[TurnFacts, ...]
    reward: float
    nodes: int = 1

    @property
    def truncated(self) -> int:
        """Count the replies that hit their limit."""
        return sum(turn.reply.truncated for turn in self.turns)


@dataclass(frozen=True, slots=True)
class LoopRunner:
    """The settings that all runs of a process share."""

    profile: Profile
    splitter: Splitter
    settings: LoopSettings

    async def run(self, loop: AgentName, row: Mapping[str, object], model: RecordingModel) -> Session:
        """Run the loop. Raises pydantic's ValidationError on a row of another shape, and the model's errors."""
        match loop:
            case "memagent" | "memreread":
                return await self._read(loop, ReadTask.of_row(row), model)
            case "memreader":
                return await self._decide(DecideTask.of_row(row), model)

    async def _read(self, loop: AgentName, task: ReadTask, model: RecordingModel) -> Session:
        chunks = self.splitter.split(task.context, chunk_tokens=self.profile.budget.chunk_tokens)
        if loop == "memagent":
            result = await read_document(task.question, chunks, model=model, profile=self.profile, report=model.report)
        else:
            result = await reread_document(
                task.question,
                chunks,
                model=model,
                profile=self.profile,
                max_rereads=self.settings.max_rereads,
                report=model.report,
            )
        facts = facts_of(
            model.turns,
            question=task.question,
            golds=task.golds,
            empty_memory=self.profile.empty_memory,
            step_reward=self.settings.step_reward,
        )
        reward = answer_reward(result.raw_answer, task.golds, score=self.settings.reward)
        return Session(tuple(model.turns), tuple(facts), reward, nodes=1 + result.rereads)

    async def _decide(self, task: DecideTask, model: RecordingModel) -> Session:
        result = await decide(
            task.turns,
            model=model,
            index=HeldMemories(task.memories),
            profile=self.profile,
            max_turns=self.settings.max_searches,
            report=model.report,
        )
        return Session(tuple(model.turns), tuple(facts_of(model.turns)), self._decision_reward(result, task.gold))

    def _decision_reward(self, result: DecisionResult, gold: tuple[str, ...]) -> float:
        if self.settings.decisions == "exact":
            return float(is_decision(decided_by(result.decision), gold))
        return memreader_reward(result, Gold.told(gold)).total
