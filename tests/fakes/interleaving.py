"""Runs coroutines in an order that a seed decides, one step at a time.

A step ends where a task asks for its next turn: before each operation that others can observe.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

from tests.fakes.virtual_clock import VirtualClock

_STEP_S: Final = 0.001
_STALLS: Final = 0.05
"""The share of steps that take long."""
_LONGEST_SLEEP_S: Final = 60.0
_IDLE_LOOPS = 5
"""Rounds of the event loop in which no task reaches its next step before all of them count as waiting."""
NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
_name: ContextVar[str | None] = ContextVar("name", default=None)


class Interleaving:
    """A deterministic scheduler. Nothing that it runs may wait for the outside world.

    A step takes a millisecond of ``clock``. With ``stall_s``, some take up to so many seconds, as on a machine with too
    much to do. ``steps`` are the tasks' names in the order in which they took their steps.
    """

    def __init__(self, seed: int, clock: VirtualClock, *, stall_s: float = 0.0) -> None:
        self._random = random.Random(seed)
        self._stalls = random.Random(f"{seed} stalls")
        self._stall_s = stall_s
        self._clock = clock
        self._waiting: dict[tuple[str, int], asyncio.Future[None]] = {}
        self._turns = 0
        self.steps: list[str] = []

    async def turn(self) -> None:
        """Wait for this task's turn. Outside of :meth:`run` it is always one's turn."""
        name = _name.get()
        if name is None:
            return
        self._turns += 1
        key = name, self._turns  # a task may have others of its own, under the same name
        self._waiting[key] = turn = asyncio.get_running_loop().create_future()
        try:
            await turn
        finally:
            self._waiting.pop(key, None)
        self.steps.append(name)

    async def run(
        self,
        work: Mapping[str, Coroutine[object, object, object]],
        *,
        after: Mapping[str, int] = NOTHING,
        watch: Callable[[], None] = lambda: None,
    ) -> dict[str, object]:
        """Run all of it; results and exceptions by name. Raises RuntimeError on a deadlock.

        ``after``: the number of steps of all tasks before one begins, unless nothing else is left to run. ``watch`` is
        called after each step.
        """
        tasks: dict[str, asyncio.Task[object]] = {}
        later = sorted(work, key=lambda name: after.get(name, 0))
        while True:
            while later and (len(self.steps) >= after.get(later[0], 0) or not self._waiting):
                name = later.pop(0)
                tasks[name] = asyncio.create_task(_named(name, work[name]))
                await self._settle()
            await self._settle()
            watch()
            if not later and all(task.done() for task in tasks.values()):
                break
            self._clock.now += self._duration()
            await self._woken()
            if not self._waiting:
                raise RuntimeError(f"deadlock after {self.steps}")
            self._waiting.pop(self._random.choice(sorted(self._waiting))).set_result(None)
        return {name: task.exception() or task.result() for name, task in tasks.items()}

    def first(self, name: str) -> int:
        """The place of a task's first step; infinitely late if it took none."""
        return self.steps.index(name) if name in self.steps else len(self.steps)

    def last(self, name: str) -> int:
        """The place of a task's last step."""
        return len(self.steps) - 1 - self.steps[::-1].index(name)

    def _duration(self) -> float:
        stalls = self._stall_s and self._stalls.random() < _STALLS
        return _STEP_S + (self._stalls.uniform(0, self._stall_s) if stalls else 0)

    async def _woken(self) -> None:
        """Let timers that are over call their tasks; while all tasks sleep, time passes."""
        await self._settle()
        asleep = 0
        while not self._waiting and asleep < _LONGEST_SLEEP_S:
            self._clock.now += _STEP_S
            asleep += _STEP_S
            await self._settle()

    async def _settle(self) -> None:
        idle, before = 0, -1
        while idle < _IDLE_LOOPS:
            await asyncio.sleep(0)
            idle = idle + 1 if len(self._waiting) == before else 0
            before = len(self._waiting)


async def _named(name: str, work: Coroutine[object, object, object]) -> object:
    _name.set(name)
    return await work
