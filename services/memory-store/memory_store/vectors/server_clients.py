"""Replaces a Qdrant client when it is old, so that nodes that came later get their share of the connections."""

import asyncio
import time
from collections.abc import Callable

from qdrant_client import AsyncQdrantClient

_AGE_S = 600.0
_GRACE_S = 60.0
"""Longer than any request takes."""


class RenewedClient:
    """``now()`` is the client to use for one request. A client is closed ``grace_s`` after another one replaced it.

    A replaced client resolves the host's name again, and tries the first of several addresses first.
    """

    def __init__(
        self,
        make: Callable[[], AsyncQdrantClient],
        *,
        age_s: float = _AGE_S,
        grace_s: float = _GRACE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._age_s = age_s
        self._grace_s = grace_s
        self._clock = clock
        self._client = make()
        self._made_at = clock()
        self._replaced = dict[asyncio.Task[None], AsyncQdrantClient]()

    def now(self) -> AsyncQdrantClient:
        if self._clock() - self._made_at > self._age_s:
            before, self._client = self._client, self._make()
            self._made_at = self._clock()
            closing = asyncio.create_task(self._close_later(before), name="closing a Qdrant client")
            self._replaced[closing] = before
        return self._client

    async def close(self) -> None:
        """Close the present client, and those that wait for it."""
        waiting, self._replaced = self._replaced, {}
        for closing, client in waiting.items():
            closing.cancel()
            await client.close()
        await self._client.close()

    async def _close_later(self, client: AsyncQdrantClient) -> None:
        await asyncio.sleep(self._grace_s)
        self._replaced = {task: one for task, one in self._replaced.items() if one is not client}
        await client.close()
