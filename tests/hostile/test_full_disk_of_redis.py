"""Redis on a disk that fills up under writes: clients are refused, and what was acknowledged is stored later."""

from collections.abc import Generator
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from tests.fakes.processes import PATIENCE_S
from tests.fakes.redis_server import RedisServer
from tests.fakes.small_disk import small_disk, weigh_down
from tests.gateway.api_rig import BOB_KEY
from tests.gateway.rig import eventually
from tests.hostile.stack import Stack, hostile_stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
WRITES: Final = 300
FULL: Final = 100
"""The disk has not a byte from that write on …"""
ROOM: Final = 200
"""… and room again from that one on."""
DISK_BYTES: Final = 64 * 1024**2


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    with small_disk(tmp_path / "disk", size_bytes=DISK_BYTES) as folder:
        yield folder


async def added(http: aiohttp.ClientSession, number: int) -> tuple[int, str]:
    """The status of a queued write of a user of its own, and its event."""
    turn = {"role": "user", "content": f"Remember fact-{number} please."}
    body = {"messages": [turn], "user_id": f"user-{number}"}
    async with http.post("/v1/memory/add", json=body) as answer:
        return answer.status, (await answer.json()).get("event_id", "")


async def is_stored(http: aiohttp.ClientSession, number: int) -> bool:
    async with http.get("/v1/memory", params={"user_id": f"user-{number}"}) as answer:
        return answer.status == 200 and f"fact-{number}" in await answer.text()


def revived(stack: Stack) -> RedisServer:
    """The server of the stack, started again if it ended for want of room."""
    if stack.redis.process.poll() is None:
        return stack.redis
    return RedisServer.start(port=stack.redis.port, folder=stack.redis.folder, appendonly=True)


@pytest.mark.parametrize("fsync", ["always", "everysec"])
async def test_no_acknowledged_write_is_lost(tmp_path: Path, disk: Path, fsync: str) -> None:
    (disk / "redis").mkdir()
    options = ("--appendfsync", fsync)
    acknowledged, refused = list[int](), list[int]()
    async with (
        hostile_stack(tmp_path, redis_folder=disk / "redis", redis_options=options) as stack,
        aiohttp.ClientSession(
            stack.url,
            headers={"Authorization": f"Bearer {BOB_KEY}"},
            timeout=aiohttp.ClientTimeout(PATIENCE_S),
        ) as http,
    ):
        redis = stack.redis
        for number in range(WRITES):
            if number == FULL:
                weigh_down(disk / "ballast", leave=0)
            if number == ROOM:
                (disk / "ballast").unlink()
                redis = revived(stack)
            status, event = await added(http, number)
            if event:
                acknowledged.append(number)
            else:
                refused.append(status)
        try:
            missing = list(acknowledged)

            async def all_stored() -> bool:
                missing[:] = [number for number in missing if not await is_stored(http, number)]
                return not missing

            await eventually(all_stored, timeout_s=120.0)
        finally:
            redis.stop()
        alive = {name: process.process.returncode for name, process in stack.ours.items()}

    print(f"{fsync}: {len(acknowledged)} acknowledged, {len(refused)} refused", flush=True)
    assert set(refused) == {503}
    assert len(acknowledged) > FULL
    assert set(alive.values()) == {None}
