"""The protocol in Redis that settles refused writes: alone, beside writes, and beside erasures."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from memloop.wire.memory import Namespace
from memloop_state.connecting import connect
from memloop_state.store.erasures import OPEN_MS, Begun, Claim, Erasures, Opened, Unsettled
from memloop_state.store.service import ServiceRecord
from memloop_state.store.settling import Settlings
from memory_store.vectors.live import SHARED
from tests.fakes.processes import PATIENCE_S
from tests.memory_store.api import ALICE

_GEN = "1"
_POINT = "00000000-0000-0000-0000-000000000001"


@dataclass
class Standing:
    """A store that works on the first collection."""

    gen: str = _GEN
    site: str = SHARED
    has_copies: bool = True

    async def catch_up(self) -> None:
        """No other collection takes over."""


@dataclass
class Store:
    """The protocol's steps at one store."""

    erasures: Erasures
    settlings: Settlings
    waits: asyncio.Event

    async def opened(self, name: str, point: str = _POINT, namespace: Namespace = ALICE) -> Opened:
        """A write that is on its way."""
        [begun] = await self.erasures.begin([Claim(namespace)])
        assert isinstance(begun, Begun)
        return await self.erasures.open([begun], name, [point])

    async def died(self, name: str) -> None:
        """A write whose store died on the way, and whose time (of the fixture ``quick``) is over."""
        await self.opened(name)
        await asyncio.sleep(0.01)

    async def refused(self, name: str, point: str = _POINT) -> None:
        """A write that Qdrant refused."""
        await self.erasures.refuse(await self.opened(name, point))


@asynccontextmanager
async def connected(redis_url: str, *, open_ms: int) -> AsyncGenerator[Store]:
    """One store. ``open_ms``: when its writes count as dead."""
    waits = asyncio.Event()

    async def pause() -> None:
        waits.set()
        await asyncio.sleep(0.01)

    link = connect(redis_url)
    erasures = Erasures(link, Standing(), open_ms=open_ms, pause=pause)
    await ServiceRecord(link, SHARED).align(_GEN)
    yield Store(erasures, Settlings(erasures), waits)
    await link.aclose()


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    async with connected(redis_url, open_ms=OPEN_MS) as store:
        yield store


@pytest.fixture
async def quick(redis_url: str) -> AsyncIterator[Store]:
    """A store whose writes count as dead at once."""
    async with connected(redis_url, open_ms=1) as store:
        yield store


async def test_nothing_is_settled_after_a_write_that_was_taken(store: Store) -> None:
    await store.erasures.close(await store.opened("a"))

    assert await store.settlings.take(ALICE) is None
    assert await store.settlings.some(9) == []


async def test_no_write_begins_before_a_refused_one_is_settled(store: Store) -> None:
    await store.refused("a")
    assert await store.settlings.some(9) == [Namespace(tenant=ALICE.tenant, user_id=ALICE.user_id)]
    with pytest.raises(Unsettled):
        await store.opened("b")

    taken = await store.settlings.take(ALICE)
    assert taken is not None
    assert taken.ids == (_POINT,)
    await store.settlings.done(taken)

    await store.erasures.close(await store.opened("b"))


async def test_no_write_opens_while_one_is_settled(store: Store) -> None:
    [begun] = await store.erasures.begin([Claim(ALICE)])
    assert isinstance(begun, Begun)
    await store.refused("a")
    taken = await store.settlings.take(ALICE)
    assert taken is not None

    with pytest.raises(Unsettled):
        await store.erasures.open([begun], "b", [_POINT])
    await store.settlings.done(taken)

    assert (await store.erasures.open([begun], "b", [_POINT])).refusals == [None]


async def test_a_write_on_its_way_alone_is_not_waited_for(store: Store) -> None:
    await store.opened("a")

    assert await store.settlings.take(ALICE) is None
    assert not store.waits.is_set()


async def test_settling_waits_for_a_write_on_its_way(store: Store) -> None:
    other = await store.opened("a")
    await store.refused("b")
    waiting = asyncio.create_task(store.settlings.take(ALICE))
    await store.waits.wait()
    await store.erasures.close(other)

    async with asyncio.timeout(PATIENCE_S):
        taken = await waiting
    assert taken is not None
    assert list(taken.writes) == ["b"]


async def test_the_write_of_a_store_that_died_is_settled_once_its_time_is_over(store: Store, quick: Store) -> None:
    await quick.died("a")

    taken = await store.settlings.take(ALICE)

    assert taken is not None
    assert taken.ids == (_POINT,)


async def test_a_refused_write_that_qdrant_may_still_carry_out_keeps_its_note(store: Store) -> None:
    await store.refused("a")
    taken = await store.settlings.take(ALICE)
    assert taken is not None
    await store.settlings.done(taken)

    assert await store.settlings.take(ALICE) is None
    assert len(await store.settlings.some(9)) == 1


async def test_a_refused_write_whose_time_is_over_loses_its_note_when_it_is_settled(store: Store, quick: Store) -> None:
    await quick.refused("a")
    await asyncio.sleep(0.01)
    taken = await store.settlings.take(ALICE)
    assert taken is not None
    await store.settlings.done(taken)

    assert await store.settlings.some(9) == []


async def test_a_settling_that_failed_is_another_stores(store: Store) -> None:
    await store.refused("a")
    failed = await store.settlings.take(ALICE)
    assert failed is not None
    await store.settlings.failed(failed)

    assert await store.settlings.take(ALICE) is not None


async def test_an_erasure_waits_for_a_settling(store: Store, quick: Store) -> None:
    await quick.died("a")
    taken = await store.settlings.take(ALICE)
    assert taken is not None
    store.waits.clear()

    async def erase() -> None:
        async with store.erasures.erasing(ALICE, None):
            pass

    erasing = asyncio.create_task(erase())
    await store.waits.wait()
    await store.settlings.done(taken)

    async with asyncio.timeout(PATIENCE_S):
        await erasing


async def test_a_settling_waits_for_an_erasure(store: Store, quick: Store) -> None:
    await quick.died("a")
    async with store.erasures.erasing(ALICE, None):
        store.waits.clear()
        waiting = asyncio.create_task(store.settlings.take(ALICE))
        await store.waits.wait()

    async with asyncio.timeout(PATIENCE_S):
        assert await waiting is not None
