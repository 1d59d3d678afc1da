"""Connects to Redis by a URL: one server, a cluster, or a primary that Sentinels watch. Names the servers behind it."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from redis import DriverInfo
from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from memloop_state.link import Client, ClusterClient, State, is_cluster

_DRIVER: Final = DriverInfo()
"""Made once: redis-py looks its own version up on the disk for each connection that gets none."""
_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379
_OF_ONE_NODE: Final = {"host", "port", "connection_class"}
_MOST_CONNECTIONS: Final = 100
_MOST_UNSHARED: Final = 10_000
"""For Sentinels and clusters, whose pools do not let a command wait: what Redis itself accepts."""
_RETRIES: Final = 1
_TOPOLOGY_RETRIES: Final = 3


def connect(
    url: str,
    *,
    connect_timeout_s: float = 2.0,
    read_timeout_s: float = 5.0,
    ack_copies: int = 0,
    tls: ssl.SSLContext | None = None,
) -> Redis:
    """Create a lazy client: it sends nothing before the first command.

    ``redis://host:port/0`` and ``rediss://`` (TLS) are one server; ``redis+cluster://user:key@host:port,host:port`` and
    ``rediss+cluster://`` a cluster, found through any of these nodes; ``redis+sentinel://user:key@host:port/name`` and
    ``rediss+sentinel://`` the primary of that name, found through any of these Sentinels. One server is retried once,
    for a pooled connection that it has closed; in a cluster the slot map is refreshed between retries. All other
    retries are the caller's. While all connections to one server are in use (100, or the URL's ``max_connections``), a
    command waits for one, at most ``read_timeout_s``. Sentinels' primary and a cluster have no such limit.

    An acknowledged write is on ``ack_copies`` replicas before its reply is returned; replicas have half of
    ``read_timeout_s`` for it. ``tls`` is the context of TLS connections, unless the URL has options (``ssl_…``) of its
    own. Raises ValueError for an invalid URL.
    """
    _check_ports(url)
    options: dict[str, Any] = {
        "socket_connect_timeout": connect_timeout_s,
        "socket_timeout": read_timeout_s,
        "decode_responses": True,
        "driver_info": _DRIVER,
        "protocol": 2,  # by the other one redis-py returns the entries of streams in two shapes
    }
    more: dict[str, Any]
    client: Client | ClusterClient
    match urlsplit(url).scheme.partition("+")[2]:
        case "cluster":
            nodes, named = _nodes(url, _PORT)
            if urlsplit(url).path.strip("/") not in {"", "0"} or named.pop("db", 0):
                raise ValueError("A Redis Cluster has only database 0.")
            more = {"max_connections": _MOST_UNSHARED, "retry": Retry(NoBackoff(), _TOPOLOGY_RETRIES)} | named | options
            startup = [ClusterNode(host, port) for host, port in nodes]
            client = ClusterClient(startup_nodes=startup, require_full_coverage=False, **more)
            pools = client.startup_nodes
        case "sentinel":
            nodes, named = _nodes(url, _SENTINEL_PORT)
            if not (name := unquote(urlsplit(url).path.strip("/"))):
                raise ValueError("The URL ends with the primary's name: redis+sentinel://host:26379/mymaster")
            credentials = {word: named.pop(f"sentinel_{word}", None) for word in ("username", "password")}
            asked: dict[str, Any] = {name: value for name, value in named.items() if name.startswith("ssl")}
            asked |= {"socket_connect_timeout": connect_timeout_s, "socket_timeout": connect_timeout_s}
            asked["retry"] = Retry(NoBackoff(), 0)  # where a Sentinel does not answer, the next one is there
            sentinels = LastingSentinels(nodes, sentinel_kwargs=asked | credentials)
            more = {"max_connections": _MOST_UNSHARED} | named | options
            client = cast(Client, sentinels.master_for(name, redis_class=Client, **more))  # pyright: ignore
            client.again = Retry(NoBackoff(), _RETRIES)
            pools = [client.connection_pool, *(one.connection_pool for one in sentinels.sentinels)]
        case _:
            more = {"max_connections": _MOST_CONNECTIONS, "retry": Retry(NoBackoff(), _RETRIES), **options}
            pool = BlockingConnectionPool.from_url(url, timeout=read_timeout_s, **more)  # pyright: ignore
            client, pools = cast(Client, Client.from_pool(pool)), [pool]
    if tls is not None and urlsplit(url).scheme.startswith("rediss") and "ssl_" not in urlsplit(url).query:
        for each in cast(list[Any], pools):
            each.connection_class = partial(_over, tls, each.connection_class)
        if isinstance(client, ClusterClient):  # for the nodes that it finds
            client.connection_kwargs["connection_class"] = partial(_over, tls, SSLConnection)
    client.ack_copies, client.ack_ms = ack_copies, int(read_timeout_s * 500)
    return cast(Redis, client)  # the commands that we use are the same on all


def _check_ports(url: str) -> None:
    """Refuse a port that is no number in words of our own: Python's would show the password that it is part of."""
    for host in urlsplit(url).netloc.rpartition("@")[2].split(","):
        try:
            _ = urlsplit(f"//{host}").port
        except ValueError:
            raise ValueError(
                "The Redis URL has no valid port; write / ? # @ in its password as %2F %3F %23 %40."
            ) from None


def _over(tls: ssl.SSLContext, kind: type[SSLConnection], **options: Any) -> AbstractConnection:
    """Make a TLS connection by a context that outlives it, whose files may be renewed."""
    connection = kind(**options)
    connection.ssl_context.context = tls
    return connection


def _nodes(url: str, default_port: int) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """Parse the addresses of a URL of several nodes, and the options for all connections."""
    parts = urlsplit(url)
    scheme, _, kind = parts.scheme.partition("+")
    credentials, at, hosts = parts.netloc.rpartition("@")
    each = [parse_url(f"{scheme}://{credentials}{at}{host}/?{parts.query}") for host in hosts.split(",")]
    nodes = [(options["host"], options.get("port", default_port)) for options in each if "host" in options]
    if len(nodes) < len(each):
        raise ValueError(f"A redis+{kind}:// URL names its nodes as host:port, with commas between.")
    shared = {name: value for name, value in each[0].items() if name not in _OF_ONE_NODE}
    return nodes, shared | {"ssl": scheme == "rediss"}


class LastingSentinels(Sentinel):
    """Sentinels of which one is asked at a time.

    redis-py moves the Sentinel that answers to the front of its list by swapping two entries. Two tasks that do this at
    once lose an entry (redis-py 8.1).
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)  # pyright: ignore
        self._asking = asyncio.Lock()

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        """Return the primary's address. Raises ConnectionError."""
        async with self._asking:
            return cast(tuple[str, int], await super().discover_master(service_name))  # pyright: ignore


@dataclass(frozen=True, slots=True)
class Address:
    """A server's address and credentials."""

    host: str
    port: int
    username: str | None
    password: str | None
    tls: bool


async def primaries(redis: State) -> Sequence[Address]:
    """Return the server, the Sentinels' primary or a cluster's primaries by slot. Raises the client's errors."""
    client: Any = redis
    options: Any
    found: Iterable[tuple[Any, Any]]
    if is_cluster(redis):
        await client.initialize()
        slots, options = client.nodes_manager.slots_cache, client.connection_kwargs
        first = [slots[slot][0] for slot in sorted(slots)]
        found, tls = dict.fromkeys((node.host, node.port) for node in first), "connection_class" in options
    else:
        pool: Any = client.connection_pool
        options, tls = pool.connection_kwargs, issubclass(pool.connection_class, SSLConnection)
        watched = isinstance(cast(object, pool), SentinelConnectionPool)
        found = [await pool.get_master_address() if watched else (options.get("host"), options.get("port"))]
    username, password = options.get("username"), options.get("password")
    return [Address(host or "127.0.0.1", port or _PORT, username, password, tls) for host, port in found]


async def servers(redis: State, *, primaries: bool = False) -> Sequence[Callable[..., Awaitable[Any]]]:
    """Return a command sender for each server, or for each primary."""
    if not is_cluster(redis):
        return [cast(Any, redis).execute_command]
    cluster = cast(RedisCluster, cast(object, redis))
    await cluster.initialize()
    nodes = cluster.get_primaries() if primaries else cluster.get_nodes()
    return [partial(cluster.execute_command, target_nodes=node) for node in nodes]
