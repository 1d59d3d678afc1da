"""One run of one loop for one row: the functions that serve, on a model that records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memloop.loops.memagent import read_document
from memloop.loops.memreader import decide
from memloop.loops.memreread import reread_document
from memloop.loops.results import ReadResult
from memloop.ports import Splitter
from memloop.profiles import Profile
from memloop.scoring.strict import strict_score
from trainer.decisions import told_by
from trainer.memories import HeldMemories
from trainer.rollout.recording import RecordingModel, Turn
from trainer.rollout.settings import LoopName, LoopSettings
from trainer.rollout.tasks import DecideTask, ReadTask


@dataclass(frozen=True, slots=True)
class Session:
    """What a run did and what it earned. ``nodes`` are its reading passes (1 for the memory writer)."""

    turns: tuple[Turn, ...]
    reward: float
    nodes: int = 1

    @property
    def truncated(self) -> int:
        """Replies that hit their limit."""
        return sum(turn.reply.truncated for turn in self.turns)


@dataclass(frozen=True, slots=True)
class LoopRunner:
    """What all runs of a process share."""

    profile: Profile
    splitter: Splitter
    settings: LoopSettings

    async def run(self, loop: LoopName, row: Mapping[str, object], model: RecordingModel) -> Session:
        """Run the loop. Raises pydantic's ValidationError on a row of another shape, and what the model raises."""
        match loop:
            case "memagent" | "memreread":
                return await self._read(loop, ReadTask.of_row(row), model)
            case "memreader":
                return await self._decide(DecideTask.of_row(row), model)

    async def _read(self, loop: LoopName, task: ReadTask, model: RecordingModel) -> Session:
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
        return Session(tuple(model.turns), _answer_reward(result, task), nodes=1 + result.rereads)

    async def _decide(self, task: DecideTask, model: RecordingModel) -> Session:
        result = await decide(
            task.turns,
            model=model,
            index=HeldMemories(task.memories),
            profile=self.profile,
            max_turns=self.settings.max_searches,
            report=model.report,
        )
        return Session(tuple(model.turns), float(told_by(result.decision) == task.gold))


def _answer_reward(result: ReadResult, task: ReadTask) -> float:
    return strict_score(result.raw_answer, task.golds)
