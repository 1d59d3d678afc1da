"""Hundreds of clients follow one read: they share one reader, and nobody else's work waits for them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from redis.asyncio import Redis

from memloop.wire.long_read import ReadEvent
from tests.fakes.processes import PATIENCE_S
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, TWO_TENANTS, Api, api
from tests.gateway.long_reads import PATH, asked, reader
from tests.gateway.redis_view import command
from tests.gateway.rig import eventually

FOLLOWERS = 300
AT_ONCE = 20
MANY_EVENTS = 300
OWN_CONNECTIONS = 2
"""What following costs: the shared reader, and the look at the stream by whoever joins."""


def key(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@dataclass
class Client:
    """Follows a read and keeps the numbers of the events that came."""

    stream: aiohttp.ClientResponse
    numbers: list[int] = field(default_factory=list[int])

    async def follow(self, *, until: int | None = None) -> list[int]:
        """Read to the end, or to the event of that number."""
        async for line in self.stream.content:
            if line.startswith(b"data: "):
                self.numbers.append(orjson.loads(line[6:])["sequence_number"])
                if self.numbers[-1] == until:
                    break
        return self.numbers


@dataclass(frozen=True)
class Crowd:
    """Many clients of one API; none waits for another one's connection."""

    it: Api
    http: aiohttp.ClientSession
    stack: AsyncExitStack
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def join(self, read_id: str, starting_after: int = -1) -> Client:
        """One more follower."""
        async with self.turn:
            path = f"{self.it.gateway.url}{PATH}/{read_id}?stream=true&starting_after={starting_after}"
            stream = await self.stack.enter_async_context(self.http.get(path, headers=key(ALICE_KEY)))
            assert stream.status == 200
            return Client(stream)

    async def joined(self, read_id: str, number: int) -> Sequence[Client]:
        """So many followers, who have seen that the read is queued."""
        clients = await asyncio.gather(*(self.join(read_id) for _ in range(number)))
        await asyncio.gather(*(client.follow(until=0) for client in clients))
        return clients


@asynccontextmanager
async def crowd(it: Api) -> AsyncGenerator[Crowd]:
    """Its clients leave at the end."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as http, AsyncExitStack() as stack:
        yield Crowd(it, http, stack)


async def queued(it: Api, secret: str) -> str:
    answer = await it.call("POST", PATH, asked(background=True), headers=key(secret))
    assert answer.status == 202
    return answer.json["id"]


async def works(it: Api) -> None:
    """Another tenant's adds and cancels, all at once, and the probe."""
    ids = await asyncio.gather(*(queued(it, BOB_KEY) for _ in range(20)))
    adds = [_added(it, number) for number in range(60)]
    cancels = [it.call("POST", f"{PATH}/{id_}/cancel", {}, headers=key(BOB_KEY)) for id_ in ids]
    answers = await asyncio.gather(*adds, *cancels, it.get("/readyz"))
    assert [answer.status for answer in answers] == [202] * 60 + [200] * 21


def _added(it: Api, number: int) -> Any:
    turn = {"role": "user", "content": "I like tea."}
    return it.call("POST", "/v1/memory/add", {"messages": [turn], "user_id": f"u{number}"}, headers=key(BOB_KEY))


async def connections(redis: Redis) -> int:
    """How many clients the server has."""
    return int((await command(redis, "INFO", "clients"))["connected_clients"])


async def test_hundreds_of_followers_take_no_connections_from_anybody(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=TWO_TENANTS) as it:
        redis = it.rig.work.state
        await works(it)
        before = await connections(redis)
        read_id = await queued(it, ALICE_KEY)
        async with crowd(it) as followers:
            await followers.joined(read_id, FOLLOWERS)
            assert await connections(redis) <= before + OWN_CONNECTIONS
            await works(it)
            assert await connections(redis) < before + FOLLOWERS / 2  # the pool keeps what the work at once took

        async def nobody_waits() -> bool:
            waiting = int((await command(redis, "INFO", "clients"))["blocked_clients"])
            return waiting <= 1  # the gateway waits for changes of keys

        await eventually(nobody_waits)
        assert await connections(redis) < before + FOLLOWERS / 2
        await works(it)


async def test_every_follower_gets_every_event_in_order_wherever_it_begins(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=TWO_TENANTS, hang_at=2) as it, crowd(it) as followers:
        read_id = await queued(it, ALICE_KEY)
        early = await followers.joined(read_id, FOLLOWERS)
        beyond = await followers.join(read_id, starting_after=3)
        async with it.rig.working():
            await it.rig.engine.hanging.wait()
            late = [await followers.join(read_id), await followers.join(read_id, starting_after=1)]
            it.rig.engine.let_go.set()
            seen = await asyncio.gather(*(client.follow() for client in [*early, beyond, *late]))
    assert seen[:FOLLOWERS] == [list(range(6))] * FOLLOWERS
    assert seen[FOLLOWERS:] == [[4, 5], list(range(6)), [2, 3, 4, 5]]


async def test_a_follower_that_reads_slowly_gets_every_event_from_redis_when_it_gets_there(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=TWO_TENANTS) as it:
        reads = it.gateway.app.state.reading
        read_id = await queued(it, ALICE_KEY)
        record = await reads.records.get("a", read_id)
        numbers: list[int] = []
        async with aclosing(reads.followers.follow(await reads.records.get("a", read_id))) as events:
            numbers.append((await anext(events)).sequence_number)
            for number in range(1, MANY_EVENTS):
                event = ReadEvent(type="long_read.chunk.completed", sequence_number=number)
                await reads.records.publish(event, record, foreground=False)
            await it.call("POST", f"{PATH}/{read_id}/cancel", {}, headers=key(ALICE_KEY))
            numbers += [event.sequence_number async for event in events]
    assert numbers == list(range(MANY_EVENTS + 1))


async def test_the_streams_of_a_deleted_read_end(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=TWO_TENANTS) as it, crowd(it) as followers:
        read_id = await queued(it, ALICE_KEY)
        clients = await followers.joined(read_id, 3)
        deleted = await it.call("DELETE", f"{PATH}/{read_id}", headers=key(ALICE_KEY))
        assert deleted.status == 200
        async with asyncio.timeout(PATIENCE_S):
            assert [await client.follow() for client in clients] == [[0]] * 3


async def test_many_reads_are_followed_at_once_each_by_its_own(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=TWO_TENANTS) as it, crowd(it) as followers:
        ids = [await queued(it, ALICE_KEY) for _ in range(20)]
        clients = [await followers.join(read_id) for read_id in ids]
        async with it.rig.working():
            seen = await asyncio.gather(*(client.follow() for client in clients))
    assert seen == [list(range(6))] * 20


async def test_streams_over_a_limit_are_refused_until_others_end(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=TWO_TENANTS, tenant_followers=2, max_followers=3) as it:
        mine, others = await queued(it, ALICE_KEY), await queued(it, BOB_KEY)
        async with crowd(it) as followers:
            await followers.joined(mine, 2)
            tenant_full = await it.get(f"{PATH}/{mine}?stream=true", **key(ALICE_KEY))
            stream = it.gateway.http.get(f"{it.gateway.url}{PATH}/{others}?stream=true", headers=key(BOB_KEY))
            async with stream as taken:
                process_full = await it.get(f"{PATH}/{others}?stream=true", **key(BOB_KEY))
                assert taken.status == 200
            posted = await it.call("POST", PATH, asked(background=True, stream=True), headers=key(ALICE_KEY))
        for answer, status, code in ((tenant_full, 429, "too_many_streams"), (process_full, 503, "overloaded")):
            assert (answer.status, answer.error["code"], answer.headers["Retry-After"]) == (status, code, "5")
        assert posted.status == 429
        listed = await it.get(PATH, **key(ALICE_KEY))
        assert [read["id"] for read in listed.json["data"]] == [mine]  # the refused one was not queued

        async def nobody() -> bool:
            return await it.gateway.metric("longread_followers") == 0

        await eventually(nobody)
        assert await it.gateway.metric('longread_followers_refused_total{limit="tenant"}') == 2
        assert await it.gateway.metric('longread_followers_refused_total{limit="process"}') == 1
        async with crowd(it) as followers:
            await followers.joined(mine, 2)
