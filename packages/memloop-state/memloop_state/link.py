"""Sends commands to Redis: one server, the primary that Sentinels name, or a cluster. Decides which keys share a slot.

A cluster has 16,384 slots, spread over its primaries. A key's slot is the hash of the text in its first braces, and one
script or transaction may touch keys of one slot only. Keys that change together therefore carry the same *tag* in their
names. There are twelve tags, their slots spread evenly: 2, 3, 4, 6 and 12 primaries get equally many. One server uses
one tag, so it needs no more commands than without tags (docs/decisions/0035-slots-by-place.md).

redis-py's clients get *acknowledged* commands here. One that is to be ``sure`` is EVAL, EVALSHA, or has its key as
first argument. Its reply is returned once ``ack_copies`` replicas have the write. Over one connection go at once: the
command, a *barrier* and ``WAIT``. On another connection ``WAIT`` could ask a server that took the primary's place
without the write. It counts from the connection's last write (Redis 7.2), and a command that is repeated may find its
work done and write nothing. So the barrier is a small write behind it, in the same slot, that also a full Redis accepts
once its key is there: it refuses ``SET``, and takes ``PEXPIRE``.
"""

import asyncio
import hashlib
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, Final, Protocol, cast

from redis import exceptions
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode, PipelineCommand
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff

from memloop.wire.errors import Unavailable

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
_REFUSED_FOR_NOW: Final = re.compile(r"(?:^|\s-|pipeline caused error: \(')(?:OOM|READONLY|MISCONF|NOREPLICAS) ")
"""Error prefixes of writes that may succeed later: the server is full, a replica, or cannot save.

Redis 6.2 reports an error inside a script as a plain error whose text contains the command's own error, and so
does redis-py that of a command which was sent with others.
"""
_TOO_FEW_COPIES: Final = (
    "Too few replicas of Redis have this write yet. It may be done all the same: repeat it with an Idempotency-Key."
)


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


CHECK: Final = "redis"
"""What ``check`` is called where a process reports its dependencies."""


async def check(state: State) -> None:
    """Raise Unavailable when Redis does not answer."""
    await sent(state, "PING")


def is_cluster(redis: State) -> bool:
    return isinstance(cast(object, redis), RedisCluster)


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


_TAG: Final = re.compile(r"\{([^}]+)\}")
_REPLACED: Final = re.compile(r"(?:^|\s-)(?:READONLY|NOREPLICAS) ")
"""Errors of a primary that was replaced: it is a replica, or its replicas follow another one.

redis-py sees neither the ``READONLY`` inside a script's error (Redis 6.2) nor a primary without its replicas.
"""
_ELSEWHERE: Final = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.MovedError,
    exceptions.AskError,
    exceptions.TryAgainError,
    exceptions.ClusterDownError,
)
"""Answers of a cluster's node after which another one may serve the key."""
_SETTLING_S: Final = 0.25


class TooFewCopies(exceptions.ResponseError):
    """Too few replicas had the write in time. The primary has it."""


class ClosedMeanwhile(exceptions.ConnectionError):
    """Another task closed the connection during use."""


_REOPENED: Final = Retry(NoBackoff(), 3, (ClosedMeanwhile,))


class Client(Redis):
    """A client of one server, or of the primary that Sentinels name.

    Replicas have ``ack_ms`` milliseconds for an acknowledged write. ``again`` repeats a command over a new connection,
    which asks the Sentinels; redis-py's own repetition goes to the server of before.
    """

    ack_copies = 0
    ack_ms = 0
    again = Retry(NoBackoff(), 0)

    async def execute_command(self, *args: Any, sure: bool = False, **options: Any) -> Any:
        """Execute a command and return its reply. Raises the client's errors, and TooFewCopies."""
        tried = partial(self._tried, *args, sure=sure, **options)
        return await self.again.call_with_retry(tried, lambda _: asyncio.sleep(0))

    async def _tried(self, *args: Any, sure: bool, **options: Any) -> Any:
        try:
            with _whole():
                if not self.ack_copies or not sure:
                    return await super().execute_command(*args, **options)  # pyright: ignore
                async with self.pipeline(transaction=False) as pipe:
                    for command in _with_copies(args, self.ack_copies, self.ack_ms):
                        pipe.execute_command(*command)  # pyright: ignore
                    reply, *_, copies = await pipe.execute(raise_on_error=False)
                return _acknowledged(reply, copies, self.ack_copies)
        except exceptions.ResponseError as error:
            replaced = _REPLACED.search(str(error))
            if replaced or isinstance(error, TooFewCopies):
                await self.connection_pool.disconnect(inuse_connections=False)  # new ones lead to the present primary
            if replaced:
                raise exceptions.ConnectionError("This server may not be the primary any more.") from error
            raise

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close the connections, and those to the Sentinels."""
        await super().aclose(close_connection_pool)
        if isinstance(self.connection_pool, SentinelConnectionPool):
            await self.connection_pool.sentinel_manager.aclose()  # pyright: ignore


class ClusterClient(RedisCluster):
    """A client of a cluster. It closes all connections to find its nodes again, also those that are in use."""

    ack_copies = 0
    ack_ms = 0

    async def execute_command(self, *args: Any, sure: bool = False, **options: Any) -> Any:
        """Execute a command and return its reply. Raises the client's errors, and TooFewCopies."""
        once = partial(self._once, *args, sure=sure, **options)
        return await _REOPENED.call_with_retry(once, lambda _: asyncio.sleep(0))

    async def _once(self, *args: Any, sure: bool, **options: Any) -> Any:
        with _whole():
            if not self.ack_copies or not sure:
                return await super().execute_command(*args, **options)
            tries_left = self.retry.get_retries()
            while True:
                reply, copies = await self._tried(args)
                if not isinstance(reply, _ELSEWHERE) or not tries_left:
                    return _acknowledged(reply, copies, self.ack_copies)
                tries_left -= 1
                await asyncio.sleep(_SETTLING_S)
                await super().execute_command("EXISTS", _key_of(args))  # redis-py finds the key's primary again

    async def _tried(self, command: Sequence[Any]) -> tuple[Any, Any]:
        """Send an acknowledged command to the primary of its key; return the reply, or the error, and the copies."""
        await self.initialize()
        node = self.get_node_from_key(_key_of(command))
        if node is None:
            raise exceptions.SlotNotCoveredError("No primary serves the key's slot.")
        commands = _with_copies(command, self.ack_copies, self.ack_ms)
        try:
            reply, *_, copies = await _replies(node, commands)
            if isinstance(reply, exceptions.AskError):
                host, port = cast(Any, reply).node_addr
                if (target := self.get_node(host, port)) is not None:  # no barrier, which may be at both nodes
                    _, reply, copies = await _replies(target, [("ASKING",), command, commands[-1]])
        except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
            return error, 0
        return reply, copies


@contextmanager
def _whole() -> Generator[None]:
    """Raise the cancellation that Python 3.11's ``wait_for`` drops (bpo-37658): redis-py sends by it.

    A connection that another task closes raises AttributeError (redis-py 8.1) or RuntimeError (uvloop): translate them.
    """
    task = asyncio.current_task()
    asked = 0 if task is None else task.cancelling()
    try:
        yield
    except (AttributeError, RuntimeError) as error:
        raise ClosedMeanwhile("The connection was closed meanwhile.") from error
    finally:
        if task is not None and task.cancelling() > asked:
            raise asyncio.CancelledError


def _with_copies(command: Sequence[Any], copies: int, wait_ms: int) -> list[Sequence[Any]]:
    """Return a command, its barrier and ``WAIT``."""
    key = _key_of(command)
    found = _TAG.search(key)
    barrier = f"memloop:{{{found[1] if found else key}}}:copied"
    return [command, ("SET", barrier, "", "PX", 60_000), ("PEXPIRE", barrier, 60_000), ("WAIT", copies, wait_ms)]


def _key_of(command: Sequence[Any]) -> str:
    return str(command[3] if command[0] in {"EVAL", "EVALSHA"} else command[1])


def _acknowledged(reply: Any, copies: Any, asked: int) -> Any:
    if isinstance(reply, Exception):
        raise reply
    if not isinstance(copies, int) or copies < asked:
        raise TooFewCopies("Too few replicas have the write.")
    return reply


async def _replies(node: ClusterNode, commands: Sequence[Sequence[Any]]) -> list[Any]:
    """Send commands over one connection to a node; return the replies, of which some may be errors of the server."""
    sent = [PipelineCommand(place, *command) for place, command in enumerate(commands)]
    await node.execute_pipeline(sent)
    replies: list[Any] = [one.result for one in sent]
    for lost in replies:
        if isinstance(lost, exceptions.ConnectionError | exceptions.TimeoutError):
            raise lost
    return replies
