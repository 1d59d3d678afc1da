"""Connects to Redis: one server, a cluster, or a primary that Sentinels watch. Decides which keys share a cluster slot.

A cluster has 16,384 slots, spread over its primaries. A key's slot is the hash of the text in its first braces, and one
script or transaction may touch keys of one slot only. Keys that change together therefore carry the same *tag* in their
names. There are twelve tags, their slots spread evenly: 2, 3, 4, 6 and 12 primaries get equally many. One server uses
one tag, so it needs no more commands than without tags (docs/decisions/0035-slots-by-place.md).
"""

import hashlib
import re
import ssl
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Protocol, cast
from urllib.parse import unquote, urlsplit

from redis import DriverInfo, exceptions
from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff

from memloop.wire.errors import Unavailable
from memloop_state.client import Client, ClusterClient, LastingSentinels, TooFewCopies

TAGS: Final = ("q52", "q38", "q0", "q53", "q39", "q1", "q50", "q69", "q2", "q51", "q68", "q3")
"""In the order of their slots; each lies near the middle of its twelfth of all slots."""
RETRY_AFTER_S: Final = 2.0
_UNREACHABLE: Final = (
    exceptions.ConnectionError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.ClusterError,
    exceptions.AskError,
    exceptions.TryAgainError,
    exceptions.SlotNotCoveredError,
    OSError,
)
"""Transient errors of the client: no server accepts the command now."""
_REFUSED_FOR_NOW: Final = re.compile(r"(?:^|\s-)(?:OOM|READONLY|MISCONF|NOREPLICAS) ")
"""Error prefixes of writes that may succeed later: the server is full, a replica, or cannot save.

Redis 6.2 reports an error inside a script as a plain error whose text contains the command's own error.
"""
_TOO_FEW_COPIES: Final = (
    "Too few replicas of Redis have this write yet. It may be done all the same: repeat it with an Idempotency-Key."
)
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


def _over(tls: ssl.SSLContext, kind: type[SSLConnection], **options: Any) -> AbstractConnection:
    """Make a TLS connection by a context that outlives it, whose files may be renewed."""
    connection = kind(**options)
    connection.ssl_context.context = tls
    return connection


class State(Protocol):
    """An open connection to what outlives a request. Only the modules of this package see what it can do."""

    async def aclose(self) -> None: ...


async def sent(redis: State, command: str, *args: Any, sure: bool = False, **options: Any) -> Any:
    """Send a command and return its reply, once replicas have what it wrote if it is to be ``sure``.

    ``options`` are those of redis-py's parser of the reply. Raises Unavailable.
    """
    client: Any = redis
    with redis_errors():
        return await client.execute_command(command, *args, sure=sure, **options)


async def all_sent(redis: State, commands: Iterable[Sequence[Any]]) -> list[Any]:
    """Send commands in one round trip and return their replies. Raises Unavailable."""
    client: Any = redis
    async with client.pipeline(transaction=False) as pipe:
        for command in commands:
            pipe.execute_command(*command)
        with redis_errors():
            return await pipe.execute()


def is_cluster(redis: State) -> bool:
    """Return whether the client is connected to a cluster."""
    return isinstance(cast(object, redis), RedisCluster)


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


CHECK: Final = "redis"
"""What ``check`` is called where a process reports its dependencies."""


async def check(state: State) -> None:
    """Raise Unavailable when Redis does not answer."""
    await sent(state, "PING")


async def servers(redis: State, *, primaries: bool = False) -> Sequence[Callable[..., Awaitable[Any]]]:
    """Return a command sender for each server, or for each primary."""
    if not is_cluster(redis):
        return [cast(Any, redis).execute_command]
    cluster = cast(RedisCluster, cast(object, redis))
    await cluster.initialize()
    nodes = cluster.get_primaries() if primaries else cluster.get_nodes()
    return [partial(cluster.execute_command, target_nodes=node) for node in nodes]


def tags_of(redis: State) -> Sequence[str]:
    """Return the tags that the client's keys carry."""
    return TAGS if is_cluster(redis) else TAGS[2:3]


@lru_cache(maxsize=4096)
def place_of(name: str) -> int:
    """Return the name's place, 0 to 255, which never changes; place modulo tags is its tag."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[0]


@contextmanager
def redis_errors() -> Generator[None]:
    """Translate transient failures of Redis to Unavailable (503); others are our own bugs and stay.

    Transient are: no connection, a timeout, a server that accepts no writes now (it is full, a replica, or cannot
    save), one that is loading its data, and a cluster that is electing a primary.
    """
    try:
        yield
    except exceptions.TimeoutError as error:
        raise Unavailable("Redis did not answer in time.", retry_after_s=RETRY_AFTER_S) from error
    except TooFewCopies as error:
        raise Unavailable(_TOO_FEW_COPIES, retry_after_s=RETRY_AFTER_S) from error
    except (*_UNREACHABLE, exceptions.ResponseError) as error:
        if not isinstance(error, _UNREACHABLE) and not _REFUSED_FOR_NOW.search(str(error)):
            raise
        raise Unavailable("Redis cannot be reached, or accepts no writes now.", retry_after_s=RETRY_AFTER_S) from error
    except exceptions.RedisClusterException as error:
        if "key slot" in str(error) or "dispatch" in str(error):  # the command itself is wrong
            raise
        raise Unavailable("No node of the Redis Cluster can be reached.", retry_after_s=RETRY_AFTER_S) from error


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
