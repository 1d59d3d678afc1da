"""Work that many may do at once, and the short moments that exclude all of it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from memloop.wire.errors import Unavailable

_CLOSING_S = 60.0


class Gate:
    """``shared`` for writes and searches, ``exclusive`` to replace the collection that they work on.

    Work inside the gate finishes when it closes; new work waits until it opens. A task enters the gate before it takes
    any lock and never twice: a task that waits for a closed gate must hold nothing that the work inside needs.
    ``closing_s``: how long ``exclusive`` waits for the work inside.
    """

    def __init__(self, *, closing_s: float = _CLOSING_S) -> None:
        self._closing_s = closing_s
        self._inside = 0
        self._open = asyncio.Event()
        self._open.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncGenerator[None]:
        """Enters beside other shared work."""
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
        """Enters alone. Raises ``Unavailable``, and opens again, when the work inside does not finish in time."""
        async with self._closing:
            self._open.clear()
            try:
                await self._emptied()
                yield
            finally:
                self._open.set()

    async def _emptied(self) -> None:
        try:
            async with asyncio.timeout(self._closing_s):
                await self._empty.wait()
        except TimeoutError as error:
            raise Unavailable(f"writes and searches did not pause within {self._closing_s:g} s; try again") from error
