"""A write or an erasure during a copy counts once Redis's replicas have its note, where they are asked for."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from memloop.wire.errors import Unavailable
from memory_store.redis.erasures import Begun, Claim, Erasures, Opened
from memory_store.redis.link import connect
from memory_store.redis.service import ServiceRecord
from memory_store.vectors.live import SHARED
from tests.memory_store.api import ALICE
from tests.memory_store.test_settling import Standing

_GEN = "1"
_POINT = "00000000-0000-0000-0000-000000000001"


@dataclass
class Store:
    """A store whose Redis has no replica, though the settings ask for one."""

    erasures: Erasures
    record: ServiceRecord

    async def opened(self) -> Opened:
        """A write that is on its way."""
        [begun] = await self.erasures.begin([Claim(ALICE)])
        assert isinstance(begun, Begun)
        return await self.erasures.open([begun], "a", [_POINT])


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
