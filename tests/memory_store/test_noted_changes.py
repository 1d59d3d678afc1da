"""A write or an erasure during a copy counts once Redis's replicas have its note, where they are asked for."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from redis.asyncio import Redis

from memloop.wire.errors import Unavailable
from memloop_state.connecting import connect
from memloop_state.steps import Partition, Partitions
from memloop_state.store.erasures import Begun, Claim, Erasures, Moved, Opened
from memloop_state.store.service import ServiceRecord
from memory_store.vectors.live import SHARED
from tests.memory_store.api import ALICE
from tests.memory_store.test_settling import Standing

_GEN = "1"
_POINT = "00000000-0000-0000-0000-000000000001"


@dataclass
class Store:
    """What a store writes with. Its Redis has no replica, though the settings may ask for one."""

    erasures: Erasures
    record: ServiceRecord

    async def opened(self) -> Opened:
        """A write that is on its way."""
        [begun] = await self.erasures.begin([Claim(ALICE)])
        assert isinstance(begun, Begun)
        return await self.erasures.open([begun], "a", [_POINT])


class FailsOver(Erasures):
    """Between a write's two notes Redis fails over without the first one, and the copy takes its last look."""

    record: ServiceRecord

    async def _note_again(self, part: Partition, gen: str, note: str) -> None:
        await self.record.take(9)
        assert await self.record.shut("copy", shut=True)
        assert await self.record.under_way("copy") == 0
        await super()._note_again(part, gen, note)


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[Redis]:
    found = connect(redis_url)
    yield found
    await found.aclose()


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    link = connect(redis_url, ack_copies=1)
    record = ServiceRecord(link, SHARED)
    await record.align(_GEN)
    yield Store(Erasures(link, Standing(_GEN)), record)
    await link.aclose()


async def test_without_a_copy_a_write_waits_for_no_replica(store: Store) -> None:
    assert await store.erasures.close(await store.opened()) == [None]


async def test_a_write_during_a_copy_is_refused_without_a_replica_and_stays_noted(store: Store) -> None:
    await store.record.note("copy", _GEN)
    opened = await store.opened()

    with pytest.raises(Unavailable, match="replica"):
        await store.erasures.close(opened)

    assert f'["{_POINT}"]' in await store.record.take(9)


async def test_an_erasure_during_a_copy_is_refused_without_a_replica(store: Store) -> None:
    await store.record.note("copy", _GEN)

    with pytest.raises(Unavailable, match="replica"):
        async with store.erasures.erasing(ALICE, None):
            pass


async def test_a_gate_counts_as_shut_once_a_replica_has_it(store: Store) -> None:
    await store.record.note("copy", _GEN)

    with pytest.raises(Unavailable, match="replica"):
        await store.record.shut("copy", shut=True)


async def test_a_copy_learns_that_a_failover_has_opened_its_gate(link: Redis) -> None:
    record = ServiceRecord(link, SHARED)
    await record.align(_GEN)
    await record.note("copy", _GEN)
    assert await record.shut("copy", shut=True)
    assert await record.under_way("copy") == 0

    [part, *_] = Partitions(link).partitions
    await link.hdel(part.key("gate", SHARED), "closed")

    assert await record.under_way("copy") is None


async def test_a_write_whose_note_a_failover_has_lost_does_not_count_at_a_shut_gate(link: Redis) -> None:
    record = ServiceRecord(link, SHARED)
    await record.align(_GEN)
    await record.note("copy", _GEN)
    erasures = FailsOver(link, Standing(_GEN))
    erasures.record = record
    opened = await Store(erasures, record).opened()

    with pytest.raises(Moved):
        await erasures.close(opened)
