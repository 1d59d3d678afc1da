"""Runs a coroutine step by step: its first steps without a task, a timer or a turn of the event loop."""

import asyncio
from collections.abc import Generator
from functools import partial
from typing import TypeAlias

Steps: TypeAlias = "Generator[asyncio.Future[object] | None, None, object]"
"""A coroutine, step by step; what a step yields is what it waits for, or nothing but the loop's next turn."""


class Resumed:
    """Awaits the rest of a coroutine whose first step has been run; ``waits_for`` is what that step yielded."""

    __slots__ = ("_steps", "_waits_for")

    def __init__(self, steps: Steps, waits_for: "asyncio.Future[object] | None") -> None:
        self._steps = steps
        self._waits_for = waits_for

    def __await__(self) -> Steps:
        waits_for = self._waits_for
        while True:
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's own, a cancellation for example
                step = partial(self._steps.throw, error)
            else:
                step = partial(next, self._steps)
            try:
                waits_for = step()
            except StopIteration as done:
                return done.value
            finally:
                del step  # it holds the error, whose traceback holds this frame
