"""A coroutine whose first step ran outside goes on where it stopped."""

import asyncio
from typing import cast

import pytest

from memloop_service.stepping import Resumed, Steps


async def waiting(event: asyncio.Event) -> str:
    await event.wait()
    await asyncio.sleep(0)
    return "done"


def begun(event: asyncio.Event) -> Resumed:
    steps = cast(Steps, waiting(event).__await__())
    return Resumed(steps, next(steps))


async def test_it_returns_what_the_coroutine_returns() -> None:
    event = asyncio.Event()
    rest = begun(event)
    asyncio.get_running_loop().call_soon(event.set)
    assert await rest == "done"


async def test_a_cancellation_reaches_the_coroutine() -> None:
    ended: list[str] = []

    async def noting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    steps = cast(Steps, noting().__await__())
    rest = Resumed(steps, next(steps))

    async def resume() -> object:
        return await rest

    task = asyncio.create_task(resume())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cleaned up"]
