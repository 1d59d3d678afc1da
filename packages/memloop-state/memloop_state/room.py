"""Reads Redis's memory usage and durability, refuses new work while Redis is nearly full, and has its files rewritten.

Redis is read every few seconds, so that it can still do the work that it holds. Its files keep old commands until a
rewrite, so they still hold what was deleted from its keys.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeAlias, cast

from redis import exceptions

from memloop.wire.errors import DependencyError, RateLimited, Unavailable
from memloop_state.link import State, redis_errors, servers, tags_of

_EVERY_S: Final = 2.0
_RETRY_AFTER_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class RedisState:
    """Memory and durability of Redis: of its fullest primary.

    ``limit_bytes`` is ``maxmemory``, or the machine's memory if unset. ``durable``: the append-only file works.
    """

    used_bytes: int
    limit_bytes: int
    durable: bool
    primaries: int = 1


class Room:
    """Refuses new work while Redis uses more than ``share`` of its memory; the rest is for work that is queued.

    The jobs of one tenant may hold ``tenant_share`` of that share.
    """

    def __init__(self, redis: State, *, share: float, tenant_share: float = 1.0) -> None:
        self._redis: Any = redis
        self._partitions = len(tags_of(redis))
        self._share = share
        self._tenant_share = tenant_share
        self._looked_at = float("-inf")
        self._is_full = False
        self._tenant_bytes = 0

    async def check(self) -> int:
        """Return the bytes that one tenant's jobs may hold in one partition; 0 if Redis reports no memory size.

        Asks Redis when the last look is two seconds old, or found it full. In a cluster each partition counts for
        itself: a primary's memory is divided by the number of its partitions.

        Raises Unavailable while Redis is full, and when it cannot be reached.
        """
        now = time.monotonic()
        if self._is_full or now - self._looked_at >= _EVERY_S:
            self._looked_at = now
            state = await redis_state(self._redis)
            usable_bytes = self._share * state.limit_bytes
            self._is_full = state.used_bytes > usable_bytes > 0
            of_tenant = self._tenant_share * usable_bytes * state.primaries / self._partitions
            self._tenant_bytes = math.ceil(of_tenant)
        if self._is_full:
            raise Unavailable("Redis is nearly full and takes no new work.", retry_after_s=_RETRY_AFTER_S)
        return self._tenant_bytes


class RoomSettings(Protocol):
    """The setting of how full the state's memory may be."""

    @property
    def redis_full_share(self) -> float: ...


def room_of(state: State, settings: RoomSettings, *, tenant_share: float = 1.0) -> Room:
    """Return the room by the settings."""
    return Room(state, share=settings.redis_full_share, tenant_share=tenant_share)


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The rules for the jobs of clients. Without ``room`` all are admitted.

    ``refused`` is called with the queue and ``quota`` or ``unavailable`` for each job that is not.
    """

    weights: Mapping[str, int] = field(default_factory=dict[str, int])
    room: Room | None = None
    refused: Callable[[str, str], None] = lambda queue, reason: None

    async def quota_bytes(self) -> int:
        """Return the bytes of jobs that one tenant may have queued in a partition; 0 is no limit.

        Raises Unavailable while Redis is nearly full.
        """
        return 0 if self.room is None else await self.room.check()

    @contextmanager
    def counted(self, queue: str) -> Generator[None]:
        """Count a job that is refused: the tenant is over its quota, or Redis is nearly full or unreachable."""
        try:
            yield
        except (RateLimited, Unavailable) as error:
            self.refused(queue, "quota" if isinstance(error, RateLimited) else "unavailable")
            raise


async def redis_state(redis: State) -> RedisState:
    """Read ``INFO`` of every primary. Returns the fullest one, durable if all are. Raises Unavailable."""
    with redis_errors():
        states = [_state(await server("INFO")) for server in await servers(redis, primaries=True)]
    fullest = max(states, key=lambda state: state.used_bytes / max(1, state.limit_bytes))
    return replace(fullest, durable=all(state.durable for state in states), primaries=len(states))


def _state(info: Mapping[str, object]) -> RedisState:
    return RedisState(
        used_bytes=_number(info, "used_memory"),
        limit_bytes=_number(info, "maxmemory") or _number(info, "total_system_memory"),
        durable=bool(_number(info, "aof_enabled")) and info.get("aof_last_write_status") == "ok",
    )


def _number(info: Mapping[str, object], name: str) -> int:
    value = info.get(name)
    return value if isinstance(value, int) else 0


_POLL_S = 0.05
_TIMEOUT_S = 300.0
_RUNNING = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")


Command: TypeAlias = Callable[..., Awaitable[Any]]
"""Sends any command to one server, and gives its reply."""


async def rewrite_files(link: State) -> tuple[str, ...]:
    """Rewrite the append-only file and the snapshot, those that this Redis keeps; which ones.

    Of a cluster, those of every primary and replica. Raises ``DependencyError`` when a server refuses or fails to: then
    nothing is promised.
    """
    try:
        with redis_errors():
            done = [await _rewrite(command) for command in await servers(link)]
    except exceptions.ResponseError as error:
        raise DependencyError(f"Redis refused to rewrite its files: {error}") from error
    return tuple(dict.fromkeys(name for names in done for name in names))


async def _rewrite(command: Command) -> list[str]:
    done: list[str] = []
    if int((await _persistence(command))["aof_enabled"]):
        await _idle(command)
        await command("BGREWRITEAOF")
        _check((await _idle(command)).get("aof_last_bgrewrite_status"))
        done.append("append-only file")
    config = cast("Mapping[str, str]", await command("CONFIG GET", "save"))
    if bool(config.get("save")):
        await _idle(command)
        await command("BGSAVE", "SCHEDULE")
        _check((await _idle(command)).get("rdb_last_bgsave_status"))
        done.append("snapshot")
    return done


async def _persistence(command: Command) -> Mapping[str, str | int]:
    return cast("Mapping[str, str | int]", await command("INFO", "persistence"))


async def _idle(command: Command) -> Mapping[str, str | int]:
    """Wait until nothing is being rewritten; how the last runs ended."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        info = await _persistence(command)
        if not any(int(info.get(name, 0)) for name in _RUNNING):
            return info
        await asyncio.sleep(_POLL_S)
    raise DependencyError(f"Redis still rewrites its files after {_TIMEOUT_S:.0f} s")


def _check(status: str | int | None) -> None:
    if status != "ok":
        raise DependencyError(f"Redis could not rewrite its files: {status}")
