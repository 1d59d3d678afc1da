"""The connections to one peer that are open and idle, the one used last first, until they are old."""

import asyncio
import random
import ssl
from collections import deque

from yarl import URL

from memloop.clients.http1.connection import Connection
from memloop.wire.errors import ConnectRefused, Unreachable

# Shorter than the 5 s after which uvicorn, and so vLLM, hangs up: a request never goes into a closing connection.
_KEEP_ALIVE_S = 4.0
_RETRY_AFTER_S = 1.0
_JITTER = 0.25
"""Connections that were opened together do not all end together."""


class Pool:
    """Opens connections and keeps them for a while. There is no limit: who asks decides how much is asked at a time."""

    def __init__(self, url: URL, *, peer: str, connect_s: float, read_s: float, age_s: float) -> None:
        self._url = url
        self._peer = peer
        self._connect_s = connect_s
        self._read_s = read_s
        self._age_s = age_s
        self._idle: deque[Connection] = deque()
        self._tls: ssl.SSLContext | None = None
        self._reaper: asyncio.TimerHandle | None = None

    def kept(self) -> Connection | None:
        """A connection that is open already, if there is one."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and now < connection.retires_at:
                return connection
            connection.abort()
        return None

    async def opened(self) -> Connection:
        """A new connection. Raises Unreachable, ConnectRefused."""
        try:
            async with asyncio.timeout(self._connect_s):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(self._peer, read_s=self._read_s),
                    self._url.raw_host or "",
                    self._url.port or 0,
                    ssl=self._context(),
                )
        except TimeoutError as error:
            raise Unreachable(f"the {self._peer} cannot be reached", retry_after_s=_RETRY_AFTER_S) from error
        except OSError as error:  # refused, no route, no such name, no valid certificate
            raise ConnectRefused(f"the {self._peer} cannot be reached", retry_after_s=_RETRY_AFTER_S) from error
        age_s = self._age_s * random.uniform(1 - _JITTER, 1 + _JITTER)
        connection.retires_at = asyncio.get_running_loop().time() + age_s
        return connection

    def keep(self, connection: Connection) -> None:
        """Take back a connection whose exchange is over."""
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._reaper is None:
            self._reaper = loop.call_later(_KEEP_ALIVE_S, self._reap)

    def close(self) -> None:
        """Close what is idle."""
        if self._reaper is not None:
            self._reaper.cancel()
            self._reaper = None
        while self._idle:
            self._idle.pop().abort()

    def _reap(self) -> None:
        """Close what has been idle for too long, and look again when the next one will have been."""
        self._reaper = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._idle and (self._idle[0].idle_since + _KEEP_ALIVE_S <= now or not self._idle[0].usable):
            self._idle.popleft().abort()
        if self._idle:
            self._reaper = loop.call_later(self._idle[0].idle_since + _KEEP_ALIVE_S - now, self._reap)

    def _context(self) -> ssl.SSLContext | None:
        if self._url.scheme != "https":
            return None
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls
