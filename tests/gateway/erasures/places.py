"""Finds bytes wherever a running stack keeps some: in every key of Redis, and in every file."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from redis.asyncio import Redis

from tests.gateway.erasures.kinds import kind_of
from tests.gateway.redis_view import command, keys


async def kinds_that_hold(redis: Redis, marker: str) -> set[str]:
    """The kinds of keys with the marker in name or value. A key without a kind is a fault.

    A dump has a key of any type, streams included; short values are not compressed in it.
    """
    await command(redis, "CONFIG", "SET", "rdbcompression", "no")
    raw, found = marker.encode(), set[str]()
    for key in await keys(redis):
        kind = kind_of(key)
        assert kind is not None, f"{key} has no kind: declare it in tests.gateway.erasures.kinds, with its owner"
        dump = await redis.dump(key)
        if raw in key.encode() or (dump is not None and raw in bytes(dump)):
            found.add(kind.name)
    return found


def files_that_hold(markers: Sequence[str], *folders: Path) -> list[Path]:
    """The files with one of the markers in name or content; one that is replaced meanwhile has none."""
    raws = [marker.encode() for marker in markers]
    return [path for folder in folders for path in folder.rglob("*") if path.is_file() and _has(path, raws)]


def _has(path: Path, raws: Sequence[bytes]) -> bool:
    with suppress(FileNotFoundError):
        content = path.name.encode() + path.read_bytes()
        return any(raw in content for raw in raws)
    return False
