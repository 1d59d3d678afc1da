"""Starts components stage by stage; when one dies, stops all and reports its last log lines."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from inference.process import ChildProcess
from memloop_cli.errors import CliError
from memloop_cli.stack.component import Component
from memloop_cli.stack.local import Stages

_POLL_S = 0.2
_LAST_LINES = 15
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Ready:
    """A component is ready, ``seconds`` after its start."""

    component: Component
    seconds: float


@dataclass(frozen=True, slots=True)
class _Started:
    component: Component
    child: ChildProcess


class RunningStack:
    """The started processes."""

    def __init__(self, logs: Path, report: Callable[[Ready], None]) -> None:
        self._logs = logs
        self._report = report
        self._stages: list[list[_Started]] = []
        self._files = ExitStack()

    async def start(self, stages: Stages) -> None:
        """Start the stages in turn. Raises CliError when a component dies or does not get ready in time."""
        self._logs.mkdir(parents=True, exist_ok=True)
        for stage in stages:
            started: list[_Started] = []
            self._stages.append(started)
            for component in stage:
                await self._start(component, started)
            await self.unless_one_dies(self._all_ready(started))

    async def unless_one_dies(self, work: Awaitable[_Result]) -> _Result:
        """Return the work's result. Cancels the work and raises CliError when a component dies first."""
        task = asyncio.ensure_future(work)
        deaths = {asyncio.create_task(part.child.wait()): part for stage in self._stages for part in stage}
        try:
            await asyncio.wait({task, *deaths}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise next(_death(part) for death, part in deaths.items() if death.done())
        finally:
            for pending in (task, *deaths):
                pending.cancel()
            await asyncio.gather(task, *deaths, return_exceptions=True)

    async def stop(self) -> None:
        """Stop all in reverse order of their start."""
        for stage in reversed(self._stages):
            await asyncio.gather(*(part.child.stop() for part in stage))
        self._files.close()

    async def _start(self, component: Component, started: list[_Started]) -> None:
        file = self._files.enter_context((self._logs / f"{component.name}.log").open("w", encoding="utf-8"))

        def write(line: str) -> None:
            file.write(f"{line}\n")
            file.flush()

        child = await ChildProcess.start(
            component.command, on_line=write, environment=component.environment, grace_s=component.grace_s
        )
        started.append(_Started(component, child))

    async def _all_ready(self, started: list[_Started]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for part in started:
                    group.create_task(self._until_ready(part))
        except ExceptionGroup as failures:  # in an except*, early Pythons 3.11 wrap what is raised once more
            known = failures.subgroup(CliError)
            if known is None:
                raise
            raise known.exceptions[0] from None

    async def _until_ready(self, part: _Started) -> None:
        began = time.monotonic()
        why: str | None = "not checked yet"
        while why is not None:
            if time.monotonic() - began > part.component.timeout_s:
                raise CliError(
                    f"{part.component.name} was not ready within {part.component.timeout_s:g} s: {why}",
                    detail=part.child.last_words(_LAST_LINES),
                )
            await asyncio.sleep(_POLL_S)
            why = await part.component.probe()
        self._report(Ready(part.component, time.monotonic() - began))


@asynccontextmanager
async def running_stack(stages: Stages, *, logs: Path, report: Callable[[Ready], None]) -> AsyncGenerator[RunningStack]:
    """Run the stack inside the context: ready on entering, stopped on leaving. Raises as ``start`` does."""
    stack = RunningStack(logs, report)
    try:
        await stack.start(stages)
        yield stack
    finally:
        await stack.stop()


def _death(part: _Started) -> CliError:
    return CliError(
        f"{part.component.name} died with status {part.child.exit_code}; the stack is stopped. Its last log lines:",
        detail=part.child.last_words(_LAST_LINES),
    )
