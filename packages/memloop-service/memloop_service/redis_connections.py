"""Connections to Redis with five additions to redis-py's own.

They report their end, they send within the caller's task, they watch all their reads with one timer, they pack commands
in C, and they hold an *acknowledged* command's reply back until replicas have the write.
"""

import asyncio
import math
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import hiredis
from redis import exceptions
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection

_DRAINED_BYTES: Final = 1 << 16
"""A transport that holds less takes more at once: asyncio's own limit."""
_CLOCK_S: Final = 0.001
"""The step of uvloop's clock: a timer may come so much too early."""


class CutOff:
    """A connection that raises ConnectionError when the cluster's client closed it during use.

    The client closes all connections to a failed node, including one that a task has just taken from the pool. That one
    then lacks its streams, an AttributeError (redis-py 8.1), or its transport is closed, a RuntimeError (uvloop). On a
    ConnectionError the client retries.
    """

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Send the command. Raises ConnectionError."""
        try:
            await super().send_packed_command(command, check_health)  # pyright: ignore
        except (AttributeError, RuntimeError) as error:
            raise exceptions.ConnectionError("The connection was closed meanwhile.") from error

    async def read_response(self, *args: Any, **kwargs: Any) -> Any:
        """Read a reply. Raises ConnectionError."""
        try:
            return await super().read_response(*args, **kwargs)  # pyright: ignore
        except AttributeError as error:
            raise exceptions.ConnectionError("The connection was closed meanwhile.") from error


class SentHere:
    """A connection that sends a command within the caller's task.

    redis-py sends inside ``asyncio.wait_for``. That takes a task and a turn of the loop for each command, and before
    Python 3.12 it drops a cancellation that arrives just after the command was sent (bpo-37658).
    """

    async def send_packed_command(self, command: Iterable[bytes], check_health: bool = True) -> None:
        """Send the command. Raises TimeoutError or ConnectionError after closing the connection."""
        connection = cast(Any, self)
        if not connection.is_connected:
            await connection.connect_check_health(check_health=False)
        if check_health and connection.health_check_interval:
            await connection.check_health()
        try:
            await self._send_packed_command(command)
        except BaseException as error:
            await connection.disconnect(nowait=True)
            if isinstance(error, OSError):
                raise _unsent(error) from error
            raise

    async def _send_packed_command(self, command: Iterable[bytes]) -> None:
        """Hand the command to the transport; wait only for one that already holds more than it should."""
        connection = cast(Any, self)
        writer: asyncio.StreamWriter = connection._writer  # noqa: SLF001 - redis-py's, of this very object
        writer.writelines(command)
        if writer.transport.get_write_buffer_size() >= _DRAINED_BYTES:
            async with asyncio.timeout(connection.socket_timeout):
                await writer.drain()


class ReadHere:
    """A connection whose reads share one timer. redis-py sets one for every reply and stops it again."""

    _ends_at: float = math.inf
    """When the read at hand gives up, on the loop's clock; infinity while nothing is read."""
    _timer: asyncio.TimerHandle | None = None

    async def read_response(self, *args: Any, **kwargs: Any) -> Any:
        """Read a reply. Raises TimeoutError or ConnectionError after closing the connection."""
        connection = cast(Any, self)
        if args or kwargs or not connection.socket_timeout or connection.health_check_interval:
            return await super().read_response(*args, **kwargs)  # pyright: ignore
        self._begin_read(connection)
        try:
            response = await connection._parser.read_response()  # noqa: SLF001 - redis-py's, of this very object
        except BaseException as error:
            await self.disconnect(nowait=True)
            if isinstance(error, OSError):
                raise exceptions.ConnectionError(f"The reply could not be read: {error}") from error
            raise
        finally:
            self._ends_at, self._active_read_timeout = math.inf, None
        if isinstance(response, exceptions.ResponseError):
            try:
                raise response from None
            finally:
                del response  # its traceback holds this frame, and those of the command
        return response

    async def disconnect(self, *args: Any, **kwargs: Any) -> None:
        """Close the connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await super().disconnect(*args, **kwargs)  # pyright: ignore

    def reschedule(self, when: float | None) -> None:
        """Let the read at hand go on until ``when``: redis-py's handlers of maintenance notifications ask for it."""
        self._ends_at = math.inf if when is None else when

    def _begin_read(self, connection: Any) -> None:
        loop = asyncio.get_running_loop()
        self._ends_at, self._active_read_timeout = loop.time() + connection.socket_timeout, self
        if self._timer is None:
            self._timer = loop.call_at(self._ends_at, self._look)

    def _look(self) -> None:
        """Raise TimeoutError in a read that has taken too long; look again when a later one will have."""
        self._timer = None
        if math.isinf(self._ends_at):
            return  # the next read sets it again
        loop, stream = asyncio.get_running_loop(), cast(Any, self)._reader  # noqa: SLF001 - redis-py's
        if self._ends_at - loop.time() > _CLOCK_S:
            self._timer = loop.call_at(self._ends_at, self._look)
        elif stream is not None:
            stream.set_exception(exceptions.TimeoutError("The server did not answer in time."))


def _unsent(error: OSError) -> exceptions.RedisError:
    """Return the client's own error for one of the socket."""
    if isinstance(error, TimeoutError):
        return exceptions.TimeoutError("The server did not take the command in time.")
    return exceptions.ConnectionError(f"The command could not be sent: {error}")


_packed: Final = cast(Callable[[tuple[Any, ...]], bytes], hiredis.pack_command)  # pyright: ignore


class PackedInC:
    """A connection whose commands hiredis packs; redis-py does so in its client without asyncio alone."""

    def pack_command(self, *args: Any) -> list[bytes]:
        """Pack the command, whose name may be several words. Raises DataError for a value that is no argument."""
        name = args[0].encode() if isinstance(args[0], str) else args[0]
        try:
            return [_packed((*name.split(), *args[1:]))]
        except TypeError as error:
            raise exceptions.DataError(str(error)) from error


class Acknowledged(str):
    """The name of a command whose reply waits for replicas: EVAL, EVALSHA, or one whose first argument is its key."""

    __slots__ = ()


class TooFewCopies(exceptions.ResponseError):
    """Too few replicas had the write in time. The primary has it."""


_BARRIER: Final = """
if redis.call('PEXPIRE', KEYS[1], 60000) == 0 then redis.call('SET', KEYS[1], '', 'PX', 60000) end
"""
_TAG: Final = re.compile(r"\{([^}]+)\}")


class _Packed(list[bytes]):
    """An acknowledged command, a barrier and ``WAIT``, packed as one message."""


class WithCopies:
    """A connection that returns the reply of an ``Acknowledged`` command once ``ack_copies`` replicas have the write.

    Three commands are sent at once on the connection: the command, a *barrier* and ``WAIT``. ``WAIT`` counts from the
    connection's last write (Redis 7.2), and a command that is repeated may find its work done and write nothing. The
    barrier is a small write behind it, in the same slot, that also a full Redis accepts once its key is there.
    """

    def __init__(self, *, ack_copies: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self._copies = ack_copies
        self._waits = False

    def pack_command(self, *args: Any) -> list[bytes]:
        """Pack the command and what follows it."""
        pack = cast(Callable[..., list[bytes]], super().pack_command)  # pyright: ignore
        if not self._copies or not isinstance(args[0], Acknowledged):
            return pack(*args)
        wait_ms = int(self.socket_timeout * 500)  # pyright: ignore
        barrier = pack("EVAL", _BARRIER, 1, _barrier_of(args))
        return _Packed([*pack(*args), *barrier, *pack("WAIT", self._copies, wait_ms)])

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Send the command. The connection may be made here, with commands and replies of its own."""
        await super().send_packed_command(command, check_health)  # pyright: ignore
        self._waits = isinstance(command, _Packed)

    async def read_response(self, *args: Any, **kwargs: Any) -> Any:
        """Read a reply. Raises TooFewCopies after closing the connection, whose server may have been replaced."""
        if not self._waits:
            return await super().read_response(*args, **kwargs)  # pyright: ignore
        self._waits = False
        reply = await self._reply(*args, **kwargs)
        await self._reply()
        copies = await self._reply()
        if isinstance(reply, exceptions.ResponseError):
            raise reply
        if not isinstance(copies, int) or copies < self._copies:
            await self.disconnect()  # pyright: ignore
            raise TooFewCopies("Too few replicas have the write.")
        return reply

    async def _reply(self, *args: Any, **kwargs: Any) -> Any:
        """Read one reply, which may be an error."""
        try:
            return await super().read_response(*args, **kwargs)  # pyright: ignore
        except exceptions.ResponseError as error:
            return error


def _barrier_of(command: tuple[Any, ...]) -> str:
    """Name a key in the slot of the command's first key."""
    key = str(command[3] if command[0] in {"EVAL", "EVALSHA"} else command[1])
    found = _TAG.search(key)
    return f"memloop:{{{found[1] if found else key}}}:copied"


class GivenTls:
    """A connection by a TLS context that is given, if one is; else by the options of the URL."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, **options: Any) -> None:
        super().__init__(**options)
        if tls is not None:
            self.ssl_context.context = tls  # pyright: ignore


class OurConnection(CutOff, WithCopies, PackedInC, SentHere, ReadHere, Connection):
    pass


class OurTlsConnection(CutOff, GivenTls, WithCopies, PackedInC, SentHere, ReadHere, SSLConnection):
    pass


class _SocketFileConnection(CutOff, WithCopies, PackedInC, SentHere, ReadHere, UnixDomainSocketConnection):
    pass


OURS: Final[Mapping[type[AbstractConnection], type[AbstractConnection]]] = {
    Connection: OurConnection,
    SSLConnection: OurTlsConnection,
    UnixDomainSocketConnection: _SocketFileConnection,
}
