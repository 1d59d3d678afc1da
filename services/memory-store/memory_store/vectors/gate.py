"""Work that many may do at once, and the short moments in which nobody may."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator


class Gate:
    """``shared`` for writes and searches, ``exclusive`` to replace what they work on.

    Who is inside when the gate closes finishes first; who comes then waits.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._open = asyncio.Event()
        self._open.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncGenerator[None]:
        """Beside others of the kind."""
        while not self._open.is_set():
            await self._open.wait()
        self._inside += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                self._empty.set()

    @contextlib.asynccontextmanager
    async def exclusive(self) -> AsyncGenerator[None]:
        """Alone."""
        async with self._closing:
            self._open.clear()
            try:
                await self._empty.wait()
                yield
            finally:
                self._open.set()
