"""Applies an async function to many items with bounded concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


async def bounded_map(places: int, things: Iterator[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Run ``work`` on each item, ``places`` at a time; items are drawn as places become free.

    The first failure cancels the rest and is raised unchanged.
    """

    async def place() -> None:
        for thing in things:
            await work(thing)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(places):
                group.create_task(place())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
