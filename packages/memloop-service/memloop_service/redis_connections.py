"""Connections to Redis that report their end and a task's cancellation, which redis-py's own do not."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from redis import exceptions
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection


class _Told:
    """A connection that raises ConnectionError when the cluster's client closed it during use.

    The client closes all connections to a failed node, including one that a task has just taken from the pool. That one
    then lacks its streams, an AttributeError (redis-py 8.1); on a ConnectionError the client retries.
    """

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Send the command. Raises ConnectionError."""
        try:
            await super().send_packed_command(command, check_health)  # pyright: ignore
        except AttributeError as error:
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


class OurConnection(_Cancelled, _Told, Connection):
    pass


class OurTlsConnection(_Cancelled, _Told, SSLConnection):
    pass


class _SocketFileConnection(_Cancelled, _Told, UnixDomainSocketConnection):
    pass


OURS: Final[Mapping[type[AbstractConnection], type[AbstractConnection]]] = {
    Connection: OurConnection,
    SSLConnection: OurTlsConnection,
    UnixDomainSocketConnection: _SocketFileConnection,
}
