"""Connections to Redis with four additions to redis-py's own.

They report their end, they send within the caller's task, they pack commands in C, and they hold an *acknowledged*
command's reply back until replicas have the write.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import hiredis
from redis import exceptions
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection


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
        if check_health:
            await connection.check_health()
        try:
            async with asyncio.timeout(connection.socket_timeout):
                await super()._send_packed_command(command)  # pyright: ignore
        except BaseException as error:
            await connection.disconnect(nowait=True)
            if isinstance(error, OSError):
                raise _unsent(error) from error
            raise


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


class OurConnection(CutOff, WithCopies, PackedInC, SentHere, Connection):
    pass


class OurTlsConnection(CutOff, WithCopies, PackedInC, SentHere, SSLConnection):
    pass


class _SocketFileConnection(CutOff, WithCopies, PackedInC, SentHere, UnixDomainSocketConnection):
    pass


OURS: Final[Mapping[type[AbstractConnection], type[AbstractConnection]]] = {
    Connection: OurConnection,
    SSLConnection: OurTlsConnection,
    UnixDomainSocketConnection: _SocketFileConnection,
}
