"""Locks of namespaces and the gate that closes them all: nobody waits for ever."""

import asyncio

import pytest

from memloop.wire.errors import Unavailable
from memory_store.items.guarded import NamespaceLocks
from memory_store.vectors.live import Gate
from tests.fakes.processes import PATIENCE_S


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_batch_that_waits_for_a_lane_does_not_deadlock_with_a_closing_gate() -> None:
    gate = Gate()
    locks = NamespaceLocks(gate)
    release = asyncio.Event()
    done: list[str] = []

    async def single() -> None:
        async with locks.hold("b"):
            await release.wait()
        done.append("single")

    async def batch() -> None:
        async with locks.hold("a", "b"):
            done.append("batch")

    async def copy() -> None:
        async with gate.exclusive():
            done.append("copy")

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        for work in (single, batch, copy):
            tasks.create_task(work())
            await _turns()
        release.set()

    assert done == ["single", "batch", "copy"]


async def test_batches_that_share_lanes_take_them_in_one_order() -> None:
    locks = NamespaceLocks()
    done: list[tuple[str, ...]] = []

    async def batch(*names: str) -> None:
        async with locks.hold(*names):
            await _turns()
            done.append(names)

    await asyncio.wait_for(asyncio.gather(batch("a", "b"), batch("b", "a"), batch("b", "b")), PATIENCE_S)

    assert len(done) == 3
    assert len(locks) == 0


async def test_a_gate_that_cannot_close_in_time_opens_again() -> None:
    gate = Gate(closing_s=0.05)

    async with gate.shared():
        with pytest.raises(Unavailable, match=r"0\.05 s"):
            async with gate.exclusive():
                pytest.fail("the gate closed around somebody")
        async with gate.shared():
            pass

    async with gate.exclusive():
        pass
