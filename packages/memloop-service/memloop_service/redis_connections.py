"""Connections to Redis with three additions to redis-py's own.

They report their end and a task's cancellation, and they hold an *acknowledged* command's reply back until replicas
have the write.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from redis import exceptions
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection


class _ClosedMeanwhile:
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


class _Cancelled:
    """A connection that raises CancelledError for a task that was cancelled while it sent a command.

    redis-py sends a command inside ``asyncio.wait_for``. Before Python 3.12, ``wait_for`` drops a cancellation that
    arrives just after the command was sent (bpo-37658), and the task goes on.
    """

    async def send_packed_command(self, *args: Any, **kwargs: Any) -> None:
        """Send a command. Raises CancelledError after closing the connection, because its reply is never read."""
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        await super().send_packed_command(*args, **kwargs)  # pyright: ignore
        if task is not None and task.cancelling() > before:
            await self.disconnect(nowait=True)  # pyright: ignore
            raise asyncio.CancelledError


class CutOff(_Cancelled, _ClosedMeanwhile):
    """Reports its end and a task's cancellation."""


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


class OurConnection(CutOff, WithCopies, Connection):
    pass


class OurTlsConnection(CutOff, WithCopies, SSLConnection):
    pass


class _SocketFileConnection(CutOff, WithCopies, UnixDomainSocketConnection):
    pass


OURS: Final[Mapping[type[AbstractConnection], type[AbstractConnection]]] = {
    Connection: OurConnection,
    SSLConnection: OurTlsConnection,
    UnixDomainSocketConnection: _SocketFileConnection,
}
