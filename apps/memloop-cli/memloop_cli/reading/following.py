"""Follows a queued read to its end; a lost connection is taken up again where it broke off."""

import asyncio
from contextlib import aclosing
from typing import Final

from memloop.wire.errors import DependencyError
from memloop.wire.long_read import LongRead
from memloop_cli.errors import BadInput
from memloop_cli.reading.showing import Watcher, finished
from memloop_clients import GatewayClient

_PAUSE_S: Final = 1.0
_MOST_BREAKS: Final = 60
"""Consecutive connections that bring no event."""


async def followed(client: GatewayClient, read_id: str, watcher: Watcher) -> LongRead:
    """Return the finished read. Raises CliError when it failed or was cancelled, and the gateway's errors."""
    last, seen, breaks = None, -1, 0
    while True:
        before = seen
        try:
            async with aclosing(client.read_events(read_id, starting_after=seen)) as events:
                async for event in events:
                    watcher.see(event)
                    seen, last = event.sequence_number, event.read or last
            if last is not None and last.status not in {"queued", "in_progress"}:
                return finished(last)
        except DependencyError:
            if breaks >= _MOST_BREAKS:
                raise
        breaks = 0 if seen > before else breaks + 1
        if breaks > _MOST_BREAKS:
            return finished(last)
        await asyncio.sleep(_PAUSE_S)


async def named_read(client: GatewayClient, name: str) -> str:
    """Return a read's id; ``last`` is the newest. Raises BadInput without any."""
    if name != "last":
        return name
    reads = await client.reads(limit=1)
    if not reads:
        raise BadInput("there is no read to resume")
    return reads[0].id
