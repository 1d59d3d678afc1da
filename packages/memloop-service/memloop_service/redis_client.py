"""A client of one Redis server whose commands take redis-py's steps without its timing and its counters.

redis-py 8.1 records the duration, the retries and the connection's states of every command, for an exporter that our
processes do not have. That took half of a command's processor time.
"""

from typing import Any, Final

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection

_RETRIED: Final = (exceptions.ConnectionError, exceptions.TimeoutError)


class LeanRedis(Redis):
    """Sends a command again once, on a new connection, when its connection was lost or the server did not answer."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute a command and return its reply. Raises the client's errors."""
        pool = self.connection_pool
        connection: AbstractConnection = await pool.get_connection()
        try:
            try:
                return await self._asked(connection, args, options)
            except _RETRIED:
                await connection.disconnect()
            try:
                return await self._asked(connection, args, options)
            except _RETRIED:
                await connection.disconnect()
                raise
        finally:
            await pool.release(connection)

    async def _asked(self, connection: AbstractConnection, command: tuple[Any, ...], options: dict[str, Any]) -> Any:
        await connection.send_command(*command)
        return await self.parse_response(connection, command[0], **options)  # pyright: ignore
