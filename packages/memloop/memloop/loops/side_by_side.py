"""Runs parts of a read side by side and reports their steps in an order that does not depend on their speed.

Calls carry the name of their branch, so a journal finds them in any order. Reports of free branches alternate. When the
budget is spent, every branch finishes the call that it has begun.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from memloop.loops.journal import BudgetSpent
from memloop.ports import ChatModel, Completion, Prompt, Report

Result = TypeVar("Result")
Step = TypeVar("Step")


@dataclass(frozen=True, slots=True)
class Branch:
    """A ChatModel whose calls carry the name of a branch, before the names of the branches inside it."""

    model: ChatModel
    name: str

    async def complete(self, prompt: Prompt) -> Completion:
        return await self.model.complete(replace(prompt, branch=f"{self.name}/{prompt.branch}"))


class AtOnce:
    """A ChatModel with a limit on the calls in flight."""

    def __init__(self, model: ChatModel, limit: int) -> None:
        self._model = model
        self._room = asyncio.Semaphore(limit)

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the model's reply, once there is room."""
        async with self._room:
            return await self._model.complete(prompt)


async def together(works: Sequence[Callable[[], Awaitable[Result]]]) -> list[Result | BudgetSpent]:
    """Return each work's result, in order, or its BudgetSpent. The first other failure cancels all and is raised."""

    async def outcome(work: Callable[[], Awaitable[Result]]) -> Result | BudgetSpent:
        try:
            return await work()
        except BudgetSpent as spent:
            return spent

    tasks = [asyncio.ensure_future(outcome(work)) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _end(tasks)


async def _end(tasks: list[asyncio.Task[Result]]) -> None:
    """Cancel the tasks, wait for them and empty the list.

    The caller's frame is part of the traceback of a task's error: if it kept a task, both would wait for the garbage
    collector.
    """
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()


async def branches(
    works: Sequence[Callable[[Report[Step]], Awaitable[Result]]], *, report: Report[Step]
) -> list[Result]:
    """Run the works, each with a report of its own; all their results, in order.

    Raises BudgetSpent after all have ended, when one of them had to end for it. A branch that fails leaves its turn
    open: later steps of the others could come in another order when the read resumes.
    """
    turns = InTurns(len(works), report)

    async def run(number: int) -> Result:
        try:
            result = await works[number](turns.of(number))
        except BudgetSpent:
            await turns.close(number)
            raise
        await turns.close(number)
        return result

    results: list[Result] = []
    for outcome in await together([partial(run, number) for number in range(len(works))]):
        if isinstance(outcome, BudgetSpent):
            raise outcome
        results.append(outcome)
    return results


class InTurns(Generic[Step]):
    """Reports one step of each free branch in turn and skips closed branches."""

    def __init__(self, count: int, report: Report[Step]) -> None:
        self._report = report
        self._waiting: list[deque[Step]] = [deque() for _ in range(count)]
        self._closed = [False] * count
        self._turn = 0
        self._reporting = asyncio.Lock()

    def of(self, branch: int) -> Report[Step]:
        async def report(step: Step) -> None:
            self._waiting[branch].append(step)
            await self._pass_on()

        return report

    async def close(self, branch: int) -> None:
        self._closed[branch] = True
        await self._pass_on()

    async def _pass_on(self) -> None:
        async with self._reporting:
            while (step := self._next()) is not None:
                await self._report(step)

    def _next(self) -> Step | None:
        for _ in self._waiting:
            branch = self._turn
            if not self._waiting[branch] and not self._closed[branch]:
                return None
            self._turn = (branch + 1) % len(self._waiting)
            if self._waiting[branch]:
                return self._waiting[branch].popleft()
        return None
