"""Work on many things, so many at once and no more; what is to be done is drawn only when there is a place for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


async def at_once(places: int, things: Iterator[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Do the work on each thing. The first failure stops all of it, and is raised as it is."""

    async def place() -> None:
        for thing in things:
            await work(thing)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(places):
                group.create_task(place())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
