"""Moves a model's requests to a candidate in stages; a stage that breaks the rule takes all of them back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from memloop.wire.errors import Unavailable
from memloop.wire.rollouts import Rollout, RolloutChange
from trainer.promotion.rule import CanaryRule, Verdict, stage_window

Pause: TypeAlias = Callable[[float], Awaitable[object]]


class RolloutCalls(Protocol):
    """The calls of a gateway's client that a canary needs."""

    async def rollouts(self) -> tuple[Rollout, ...]:
        """Return all rollouts."""
        ...

    async def change_rollout(self, change: RolloutChange) -> Rollout:
        """Begin a rollout, or change its share."""
        ...

    async def end_rollout(self, model: str) -> bool:
        """End a rollout."""
        ...


@dataclass(frozen=True, slots=True)
class Stage:
    """How one stage ended: the share of requests, the verdict, its figures, and how long it took in seconds."""

    share: float
    verdict: Verdict
    figures: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Canary:
    """``stages`` are rising shares, each over 0 and under 1; a stage without enough calls ends after ``stage_s``."""

    model: str
    candidate: str
    stages: Sequence[float]
    rule: CanaryRule = field(default_factory=CanaryRule)
    stage_s: float = 3600.0
    poll_s: float = 2.0

    async def run(
        self, gateway: RolloutCalls, on_stage: Callable[[Stage], None], *, pause: Pause = asyncio.sleep
    ) -> bool:
        """Return whether the candidate was promoted: all requests then go to it. Else none do.

        A rollout of before is ended first. Interrupted, or with an error of the gateway, it gives all requests back.
        """
        await gateway.end_rollout(self.model)
        try:
            for share in self.stages:
                stage = await self._stage(gateway, share, pause)
                on_stage(stage)
                if stage.verdict != "good":
                    await gateway.end_rollout(self.model)
                    return False
            await self._put(gateway, 1.0)
        except BaseException:
            await asyncio.shield(gateway.end_rollout(self.model))
            raise
        return True

    async def _stage(self, gateway: RolloutCalls, share: float, pause: Pause) -> Stage:
        began = asyncio.get_running_loop().time()
        before = await self._put(gateway, share)
        while True:
            await pause(self.poll_s)
            windows = stage_window(before, await self._look(gateway))
            verdict, figures = self.rule.judge(*windows)
            seconds = asyncio.get_running_loop().time() - began
            if verdict == "wait" and seconds >= self.stage_s:
                return Stage(share, "wait", f"too few calls in {self.stage_s:.0f} s: {figures}", seconds)
            if verdict != "wait":
                return Stage(share, verdict, figures, seconds)

    async def _put(self, gateway: RolloutCalls, share: float) -> Rollout:
        return await gateway.change_rollout(RolloutChange(model=self.model, candidate=self.candidate, share=share))

    async def _look(self, gateway: RolloutCalls) -> Rollout:
        for rollout in await gateway.rollouts():
            if (rollout.model, rollout.candidate) == (self.model, self.candidate):
                return rollout
        raise Unavailable(f"the rollout of {self.model} was ended by somebody else")
