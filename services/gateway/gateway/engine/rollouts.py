"""Keeps the rollouts of candidates, which all processes follow, and the engine calls that they add up.

A process reads them every ``EVERY_S`` seconds, and keeps what it has while the state is away.
"""

import asyncio
import logging
import secrets
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Literal, TypeAlias, cast

from gateway.engine.models import Models
from gateway.metrics import Metrics
from memloop.chores import alongside, patient
from memloop.wire.errors import MODEL_NOT_FOUND, Conflict, DependencyError, NotFound
from memloop.wire.rollouts import CALL_BOUNDS_S, Rollout, RolloutChange, TargetCalls
from memloop_state.link import State
from memloop_state.steps import Counts, Fields

EVERY_S: Final = 1.0
WAIT_S: Final = 2.0
KEEP_S: Final = 35 * 24 * 3600
Target: TypeAlias = Literal["incumbent", "candidate"]
_LOG = logging.getLogger(__name__)


class _Kept(RolloutChange):
    """A rollout as it is stored."""

    id: str
    created: int


class Rollouts:
    """The rollouts of all models. Methods raise Unavailable."""

    def __init__(self, state: State, models: Models, metrics: Metrics) -> None:
        self._fields = Fields(state, "rollouts")
        self._counts = Counts(state, "rollout", keep_s=KEEP_S, wait_s=WAIT_S)
        self._models = models
        self._metrics = metrics
        self._waiting: Counter[tuple[str, str]] = Counter()
        self._counted: Mapping[str, tuple[tuple[str, Target], ...]] = {}

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """Follow the rollouts and count the calls of their models until the block exits."""
        await self._follow_if_there()

        async def follow_repeatedly() -> None:
            while True:
                await asyncio.sleep(EVERY_S)
                await self._send()
                await self._follow_if_there()

        try:
            async with alongside(follow_repeatedly()):
                yield
        finally:
            await self._send()

    def called(self, model: str, seconds: float | None) -> None:
        """Count an engine call of the model; without seconds it failed."""
        for rollout, target in self._counted.get(model, ()):
            self._waiting[rollout, f"{target}|calls"] += 1
            place = "failed" if seconds is None else str(bisect_left(CALL_BOUNDS_S, seconds))
            self._waiting[rollout, f"{target}|{place}"] += 1

    async def all(self) -> tuple[Rollout, ...]:
        """Return the rollouts with their counts, by model."""
        kept = await self._kept()
        return tuple([await self._shown(kept[model]) for model in sorted(kept)])

    async def change(self, change: RolloutChange) -> Rollout:
        """Begin a rollout, or change its share. Raises NotFound for an unknown model, and Conflict."""
        kept = await self._kept()
        for param, model in (("model", change.model), ("candidate", change.candidate)):
            if not self._models.lists(model):
                raise NotFound(f"There is no model {model!r} in the models file.", param=param, code=MODEL_NOT_FOUND)
        if change.model == change.candidate:
            raise Conflict("A model cannot be its own candidate.", param="candidate")
        if (known := kept.get(change.model)) is not None and known.candidate != change.candidate:
            raise Conflict(f"{change.model} has the candidate {known.candidate}: end that first.", param="candidate")
        others = {each.candidate for each in kept.values()} - {change.candidate}
        if change.model in others or change.candidate in kept:
            raise Conflict("A candidate cannot have a candidate.", param="candidate")
        new = _Kept(id=secrets.token_hex(8), created=int(time.time()), **change.model_dump())
        if known is not None:
            new = known.model_copy(update={"share": change.share})
        await self._fields.put("", new.model, new.model_dump_json())
        await self._follow()
        return await self._shown(new)

    async def end(self, model: str) -> bool:
        """End a model's rollout: all its requests go to itself. Returns False if it had none."""
        gone = await self._fields.delete("", model)
        await self._follow()
        return bool(gone)

    async def _kept(self) -> dict[str, _Kept]:
        found = await self._fields.all("")
        return {model: _Kept.model_validate_json(raw) for model, raw in found.items()}

    async def _shown(self, kept: _Kept) -> Rollout:
        (counts,) = await self._counts.read([kept.id])
        return Rollout(
            **kept.model_dump(),
            incumbent_calls=_calls("incumbent", kept.model, counts),
            candidate_calls=_calls("candidate", kept.candidate, counts),
        )

    async def _follow_if_there(self) -> None:
        """Read the rollouts if the state answers in time; a process starts and goes on without it."""
        try:
            async with patient(WAIT_S):
                await self._follow()
        except (DependencyError, TimeoutError) as error:
            _LOG.debug("rollouts are not followed: %s", error)

    async def _follow(self) -> None:
        kept = await self._kept()
        self._models.shares = kept
        counted: dict[str, tuple[tuple[str, Target], ...]] = {}
        for each in kept.values():
            for model, target in ((each.model, "incumbent"), (each.candidate, "candidate")):
                counted[model] = (*counted.get(model, ()), (each.id, cast(Target, target)))
        self._counted = counted
        self._metrics.watch_calls(self.called if counted else None)

    async def _send(self) -> None:
        waiting, self._waiting = self._waiting, Counter()
        await self._counts.add(waiting)


def _calls(target: Target, model: str, counts: Mapping[str, int]) -> TargetCalls:
    return TargetCalls(
        model=model,
        calls=counts.get(f"{target}|calls", 0),
        failed=counts.get(f"{target}|failed", 0),
        durations=tuple(counts.get(f"{target}|{place}", 0) for place in range(len(CALL_BOUNDS_S) + 1)),
    )
