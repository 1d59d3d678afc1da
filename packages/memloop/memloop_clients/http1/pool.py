"""Keeps the open and idle connections to one peer until they are old; the one used last is used first."""

import asyncio
import random
from collections import deque

from memloop_clients.http1.connection import Connection
from memloop_clients.http1.dialer import Dialer

# Shorter than the 5 s after which uvicorn, and so vLLM, hangs up: a request never goes into a closing connection.
_KEEP_ALIVE_S = 4.0
_JITTER = 0.25
"""Connections that were opened together do not all end together."""


class Pool:
    """Opens connections and keeps them for a while. There is no limit: callers bound their own concurrency."""

    def __init__(self, dialer: Dialer, *, age_s: float) -> None:
        self._dialer = dialer
        self._age_s = age_s
        self._idle: deque[Connection] = deque()
        self._reaper: asyncio.TimerHandle | None = None
        self._retired = False

    def kept(self) -> Connection | None:
        """Return an idle connection, if there is one."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and now < connection.retires_at:
                return connection
            connection.abort()
        return None

    async def opened(self) -> Connection:
        """Open a connection. Raises Unreachable, ConnectRefused."""
        connection = await self._dialer.open()
        age_s = self._age_s * random.uniform(1 - _JITTER, 1 + _JITTER)
        connection.retires_at = asyncio.get_running_loop().time() + age_s
        return connection

    def keep(self, connection: Connection) -> None:
        """Take back a connection after its exchange."""
        if self._retired:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._reaper is None:
            self._reaper = loop.call_later(_KEEP_ALIVE_S, self._reap)

    def close(self) -> None:
        """Close the idle connections."""
        if self._reaper is not None:
            self._reaper.cancel()
            self._reaper = None
        while self._idle:
            self._idle.pop().abort()

    def retire(self) -> None:
        """Close the idle connections, and the others as they are taken back."""
        self._retired = True
        self.close()

    def _reap(self) -> None:
        """Close connections that have been idle for too long, and schedule the next check."""
        self._reaper = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._idle and (self._idle[0].idle_since + _KEEP_ALIVE_S <= now or not self._idle[0].usable):
            self._idle.popleft().abort()
        if self._idle:
            self._reaper = loop.call_later(self._idle[0].idle_since + _KEEP_ALIVE_S - now, self._reap)
