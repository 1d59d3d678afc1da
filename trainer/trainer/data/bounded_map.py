"""Applies an async function to many items with bounded concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

T = TypeVar("T")


async def bounded_map(places: int, things: Iterator[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Run ``work`` on each item, ``places`` at a time; items are drawn as places become free.

    The first failure cancels the rest and is raised unchanged.
    """

    async def place() -> None:
        for thing in things:
            await work(thing)

    with first_error():
        async with asyncio.TaskGroup() as group:
            for _ in range(places):
                group.create_task(place())


@contextmanager
def first_error() -> Generator[None]:
    """Raise the first error of a task group as it is, also that of a group within the group."""
    try:
        yield
    except ExceptionGroup as failed:
        raise _first(failed) from None


def _first(failed: ExceptionGroup[Exception]) -> Exception:
    first = failed.exceptions[0]
    return _first(cast("ExceptionGroup[Exception]", first)) if isinstance(first, ExceptionGroup) else first
