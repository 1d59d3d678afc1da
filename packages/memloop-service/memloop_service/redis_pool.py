"""A pool of connections to one Redis server in which a command waits its turn.

The client's own pool raises an error as soon as all connections are in use, so a burst of requests fails although Redis
answers within milliseconds. Its blocking pool holds a lock for every command and takes a timer for it; this one costs
nothing while a connection is free. Neither ever closes a connection; this one closes those that a burst left behind.
"""

import asyncio
from collections import deque
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import MaxConnectionsError

_IDLE_S: Final = 30.0


class WaitingPool(ConnectionPool):
    """Commands that find no connection wait for one, first come, first served, for at most ``wait_s`` seconds.

    The most recently returned connection is used first. One that is unused for ``idle_s`` seconds is closed when
    another is given back.
    """

    def __init__(self, *, wait_s: float, idle_s: float = _IDLE_S, **options: Any) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType] - redis types its keywords as Any
        self._wait_s = wait_s
        self._idle_s = idle_s
        self._idle_since: dict[AbstractConnection, float] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def get_connection(self, command_name: Any = None, *keys: Any, **options: Any) -> AbstractConnection:
        """A connection. Raises MaxConnectionsError when none became free in time."""
        if not self._waiting:
            try:
                return await self._taken()
            except MaxConnectionsError:
                pass
        return await self._freed()

    async def release(self, connection: AbstractConnection) -> None:
        """Give a connection back; whoever has waited longest takes it."""
        self._idle_since[connection] = asyncio.get_running_loop().time()
        try:
            if self._lock.locked() or connection.should_reconnect():
                await super().release(connection)
            else:
                self._in_use_connections.remove(connection)
                self._available_connections.append(connection)
        finally:
            self._wake()
        await self._close_idle()

    async def _taken(self) -> AbstractConnection:
        """Take a connection, and open it if it is not open. Raises MaxConnectionsError.

        redis-py's own steps for it, without its lock, which nothing here needs while no handler of maintenance
        notifications holds it, and without its counters.
        """
        if self._lock.locked():
            return await super().get_connection()
        connection = self.get_available_connection()
        try:
            if not connection.is_connected or await connection.can_read():
                await self.ensure_connection(connection)
        except BaseException:
            await self.release(connection)
            raise
        return connection

    async def _close_idle(self) -> None:
        """Close the connections that are idle for too long: those at the front, for the last in is the first out."""
        too_long_since = asyncio.get_running_loop().time() - self._idle_s
        free = self._available_connections
        while free and self._idle_since[free[0]] < too_long_since:
            idle = free.pop(0)
            del self._idle_since[idle]
            await idle.disconnect(nowait=True)

    async def _freed(self) -> AbstractConnection:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._wait_s
        while True:
            await self._turn(ends_at)
            try:
                return await self._taken()
            except MaxConnectionsError:
                if loop.time() >= ends_at:
                    raise

    async def _turn(self, ends_at: float) -> None:
        """Wait until a connection is given back, or until ``ends_at``."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout_at(ends_at):
                await turn
        except TimeoutError:
            pass
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._wake()
            raise
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
