"""Making Redis forget on its disk what was deleted from its keys: its files keep old commands until a rewrite."""

import asyncio
import time
from collections.abc import Mapping
from typing import cast

from memloop.wire.errors import DependencyError
from memory_store.redis_link import RedisLink, translated

_POLL_S = 0.05
_TIMEOUT_S = 300.0
_RUNNING = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")


async def rewrite_files(link: RedisLink) -> tuple[str, ...]:
    """Rewrite the append-only file and the snapshot, those that this Redis keeps; which ones.

    Raises ``DependencyError`` when Redis refuses or fails to: then nothing is promised.
    """
    done: list[str] = []
    with translated():
        if int((await _persistence(link))["aof_enabled"]):
            await _idle(link)
            await link.bgrewriteaof()  # pyright: ignore[reportUnknownMemberType]
            _check((await _idle(link)).get("aof_last_bgrewrite_status"))
            done.append("append-only file")
        if await _keeps_snapshots(link):
            await _idle(link)
            await link.bgsave(schedule=True)  # pyright: ignore[reportUnknownMemberType]
            _check((await _idle(link)).get("rdb_last_bgsave_status"))
            done.append("snapshot")
    return tuple(done)


async def _keeps_snapshots(link: RedisLink) -> bool:
    config = cast("Mapping[str, str]", await link.config_get("save"))  # pyright: ignore[reportUnknownMemberType]
    return bool(config.get("save"))


async def _persistence(link: RedisLink) -> Mapping[str, str | int]:
    return cast("Mapping[str, str | int]", await link.info("persistence"))  # pyright: ignore[reportUnknownMemberType]


async def _idle(link: RedisLink) -> Mapping[str, str | int]:
    """Wait until nothing is being rewritten; how the last runs ended."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        info = await _persistence(link)
        if not any(int(info.get(name, 0)) for name in _RUNNING):
            return info
        await asyncio.sleep(_POLL_S)
    raise DependencyError(f"Redis still rewrites its files after {_TIMEOUT_S:.0f} s")


def _check(status: str | int | None) -> None:
    if status != "ok":
        raise DependencyError(f"Redis could not rewrite its files: {status}")
