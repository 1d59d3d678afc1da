"""Follows the primary of a Redis that Sentinels watch, through redis-py's own Sentinel client.

A new connection asks the Sentinels for the primary's address. One that meets a demoted primary closes itself, so the
command's next try finds the new one.
"""

import copy
import re
import ssl
from collections.abc import Sequence
from typing import Any, Final, cast

from redis import exceptions
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    Sentinel,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import NoBackoff

from memloop_service.redis_connections import CutOff, GivenTls, OurTlsConnection, ReadHere, SentHere, WithCopies
from memloop_service.redis_pool import WaitingPool

_REPLACED: Final = re.compile(r"(?:^|\s-)(?:READONLY|NOREPLICAS) ")
"""Errors of a primary that was replaced: it is a replica, or its replicas follow another one."""


class _Sentinels(Sentinel):
    async def discover_master(self, service_name: str) -> tuple[str, int]:
        """Return the primary's address. Raises ConnectionError.

        redis-py moves the Sentinel that answers to the front of its list by swapping two entries. Two tasks that do
        this at once on one list lose an entry (redis-py 8.1), so each one has a list of its own.
        """
        asking = copy.copy(self)
        asking.sentinels = list(self.sentinels)
        address = await super(_Sentinels, asking).discover_master(service_name)  # pyright: ignore
        self.sentinels = asking.sentinels
        return cast(tuple[str, int], address)


class _Following:
    """A connection that always connects to the present primary.

    redis-py reconnects to the former address when it sends on a closed connection. It notices neither the
    ``READONLY`` inside a script's error (Redis 6.2) nor a primary without its replicas (``min-replicas-to-write``).
    """

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Send the command to the primary. Raises ConnectionError."""
        if not self.is_connected:  # pyright: ignore
            await self.connect()  # pyright: ignore
        await super().send_packed_command(command, check_health)  # pyright: ignore

    async def read_response(self, *args: Any, **kwargs: Any) -> Any:
        """Read a reply. Raises ConnectionError after closing the connection when the server may have been replaced."""
        try:
            return await super().read_response(*args, **kwargs)  # pyright: ignore
        except exceptions.ResponseError as error:
            if not isinstance(error, exceptions.ReadOnlyError) and not _REPLACED.search(str(error)):
                raise
            await self.disconnect()  # pyright: ignore
            raise exceptions.ConnectionError("This server may not be the primary any more.") from error


class _SentinelConnection(CutOff, WithCopies, _Following, SentHere, ReadHere, SentinelManagedConnection):
    pass


class _SentinelTlsConnection(
    CutOff, GivenTls, WithCopies, _Following, SentHere, ReadHere, SentinelManagedSSLConnection
):
    pass


class SentinelPool(WaitingPool, SentinelConnectionPool):
    """Connections to the primary ``name``; closing it closes those to the Sentinels too."""

    sentinel_manager: Sentinel

    async def aclose(self) -> None:
        """Close all connections."""
        await super().aclose()
        await self.sentinel_manager.aclose()


def sentinels(
    nodes: Sequence[tuple[str, int]],
    options: dict[str, Any],
    *,
    timeout_s: float,
    tls: ssl.SSLContext | None = None,
) -> Sentinel:
    """Return a client of the Sentinels.

    Its credentials are the options ``sentinel_username`` and ``sentinel_password``, which are removed; TLS is that of
    the servers. A Sentinel that does not answer is not asked twice, because the next one is there.
    """
    credentials = {word: options.pop(f"sentinel_{word}", None) for word in ("username", "password")}
    by_options = {name: value for name, value in options.items() if name.startswith("ssl")}
    once = Retry(NoBackoff(), 0)
    asked: dict[str, Any] = {"socket_connect_timeout": timeout_s, "socket_timeout": timeout_s, "retry": once}
    client = _Sentinels(nodes, sentinel_kwargs=asked | credentials | by_options)
    for pool in [sentinel.connection_pool for sentinel in client.sentinels] if tls is not None else []:
        pool.connection_class = OurTlsConnection
        pool.connection_kwargs["tls"] = tls
    return client


def sentinel_pool(name: str, client: Sentinel, options: dict[str, Any], *, wait_s: float) -> SentinelPool:
    """Return a pool of connections to the primary that the Sentinels call ``name``."""
    made = _SentinelTlsConnection if options.pop("ssl") else _SentinelConnection
    return SentinelPool(wait_s=wait_s, service_name=name, sentinel_manager=client, connection_class=made, **options)
