"""Making Redis forget on its disk what was deleted from its keys: its files keep old commands until a rewrite."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from redis import exceptions

from memloop.wire.errors import DependencyError
from memloop_state.connecting import servers
from memloop_state.link import State, redis_errors

_POLL_S = 0.05
_TIMEOUT_S = 300.0
_RUNNING = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")


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


async def _rewrite(command: Callable[..., Awaitable[Any]]) -> list[str]:
    snapshots = (await command("CONFIG GET", "save")).get("save")
    appends = int((await _idle(command))["aof_enabled"])
    files = (
        ("append-only file", appends, ("BGREWRITEAOF",), "aof_last_bgrewrite_status"),
        ("snapshot", snapshots, ("BGSAVE", "SCHEDULE"), "rdb_last_bgsave_status"),
    )
    for _, is_kept, rewrite, status in files:
        if is_kept:
            await command(*rewrite)
            if (ended := (await _idle(command)).get(status)) != "ok":
                raise DependencyError(f"Redis could not rewrite its files: {ended}")
    return [name for name, is_kept, *_ in files if is_kept]


async def _idle(command: Callable[..., Awaitable[Any]]) -> Mapping[str, str | int]:
    """Wait until nothing is being rewritten; how the last runs ended."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        info: Mapping[str, str | int] = await command("INFO", "persistence")
        if not any(int(info.get(name, 0)) for name in _RUNNING):
            return info
        await asyncio.sleep(_POLL_S)
    raise DependencyError(f"Redis still rewrites its files after {_TIMEOUT_S:.0f} s")
