"""Publishes a background read's events while the engine is at work on the next chunk."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gateway.long_read.progress import Publish
from gateway.long_read.records import TERMINAL
from memloop.wire.long_read import LongRead, ReadEvent


@asynccontextmanager
async def published_behind(publish: Publish) -> AsyncGenerator[Publish]:
    """A ``publish`` that is one event behind: an event goes out while the loop goes on.

    Events keep their order; what went wrong with one is raised at the next. The terminal event is waited for, and so is
    the last one when the block ends in any other way. A reply is safe in the journal before its event is made, so a
    crash in between loses nothing: the next run says it again.
    """
    going: asyncio.Task[None] | None = None

    async def settled() -> None:
        nonlocal going
        if going is not None:
            task, going = going, None
            await task

    async def behind(event: ReadEvent, record: LongRead) -> None:
        nonlocal going
        await settled()
        going = asyncio.create_task(_awaited(publish, event, record))
        if record.status in TERMINAL:
            await settled()

    try:
        yield behind
    finally:
        if going is not None:
            await asyncio.wait({going})
            if not going.cancelled():
                going.exception()


async def _awaited(publish: Publish, event: ReadEvent, record: LongRead) -> None:
    await publish(event, record)
