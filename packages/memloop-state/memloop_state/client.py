"""redis-py's clients of one server, of the primary that Sentinels name, and of a cluster, with *acknowledged* commands.

One that is to be ``sure`` is EVAL, EVALSHA, or has its key as first argument. Its reply is returned once ``ack_copies``
replicas have the write. Over one connection go at once: the command, a *barrier* and ``WAIT``. On another connection
``WAIT`` could ask a server that took the primary's place without the write. It counts from the connection's last write
(Redis 7.2), and a command that is repeated may find its work done and write nothing. So the barrier is a small write
behind it, in the same slot, that also a full Redis accepts once its key is there: it refuses ``SET``, and takes
``PEXPIRE``.
"""

import asyncio
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, cast

from redis import exceptions
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode, PipelineCommand
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

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
    """Return the command's first key."""
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
