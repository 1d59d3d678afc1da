"""Repeats the steps of a set-up on a Qdrant server that other stores set up at the same time.

A cluster refuses a step while another store's step is on its way through its nodes: a copy of a shard is not there yet,
a collection is known to one node only. Every step may be done twice.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from memloop.wire.errors import DependencyError
from memory_store.vectors.server_errors import accept_existing, translated

_PATIENCE_S: Final = 30.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_PASSING: Final = {
    "qdrant_consistency",
    "qdrant_failed",
    "qdrant_no_collection",
    "qdrant_no_live_copy",
    "qdrant_rate_limited",
    "qdrant_timeout",
    "qdrant_unavailable",
}
"""The errors that another store's steps may cause. A server that cannot be reached is waited for elsewhere."""
_log = logging.getLogger(__name__)

T = TypeVar("T")


async def repeated(step: Callable[[], Awaitable[T]], *, patience_s: float = _PATIENCE_S) -> T:
    """Return what the step returns, repeated for so long while it fails in a way that may pass.

    Raises its last error, as ours.
    """
    deadline = time.monotonic() + patience_s
    longest_s = _FIRST_PAUSE_S
    while True:
        try:
            with translated():
                return await step()
        except DependencyError as error:
            pause_s = longest_s * random.uniform(0.5, 1.0)
            if error.code not in _PASSING or time.monotonic() + pause_s > deadline:
                raise
            _log.info("a step of the set-up is repeated in %.2f s: %s", pause_s, error.message)
        await asyncio.sleep(pause_s)
        longest_s = min(2 * longest_s, _LONGEST_PAUSE_S)


async def made(step: Callable[[], Awaitable[object]]) -> None:
    """Repeat a step that makes something; another store may make it first."""

    async def accepting() -> None:
        with accept_existing():
            await step()

    await repeated(accepting)
