"""An erasure wins at the gateway too: nothing that was accepted before it, by whatever way, comes back after it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import redis as plain_redis

from gateway.access import Principal
from gateway.memory.operations import write_batch
from gateway.traces.keeper import Redact
from gateway.worker import working
from memloop.wire.errors import NotFound
from memloop.wire.memory import BatchResult, Namespace, StoreBatch
from memloop.wire.memory_requests import BatchedAdd, MemoryBatch
from memloop.wire.store_requests import MAX_LINES
from memloop_clients import StoreClient
from tests.fakes.job_engine import Body, Reply, add_memory, tool_call
from tests.fakes.real_store import real_store
from tests.gateway.api_rig import Api, api
from tests.gateway.long_reads import asked, queued, reader
from tests.gateway.redis_view import connected, keys_that_hold
from tests.gateway.rig import Rig, eventually, rig, script, turns
from tests.gateway.running import CHAT, Answer

SECRET = "quagga-4711"
ERASE = "/v1/memory?user_id=alice"
CHATTED = {"model": "m", "messages": [{"role": "user", "content": SECRET}], "memory": {"user_id": "alice"}}


@pytest.fixture
async def store_url(redis_url: str, tmp_path: Path) -> AsyncGenerator[str]:
    """The base URL of a running store."""
    async with real_store(redis_url, tmp_path) as url:
        yield url


async def erase(it: Api) -> None:
    answer = await it.call("DELETE", ERASE)
    assert answer.status == 200, answer.raw


async def keys_with_the_secret(redis_url: str) -> list[str]:
    """Jobs, journals, buffers, kept answers and traces that hold it."""
    async with connected(redis_url) as redis:
        return await keys_that_hold(redis, SECRET.encode())


async def exported(it: Api, user: str = "alice") -> bytes:
    """All that the store has of the user."""
    return (await it.post("/v1/memory/export", {"user_id": user, "include_raw": True})).raw


async def overtaken(it: Api, asking: Awaitable[Answer]) -> Answer:
    """The answer to a request that the engine holds until its user is erased."""
    request = asyncio.ensure_future(asking)
    await it.rig.engine.hanging.wait()
    await erase(it)
    it.rig.engine.let_go.set()
    answer = await request
    assert answer.status == 200, answer.raw
    return answer


async def test_a_chat_that_an_erasure_overtakes_is_not_remembered_and_the_next_one_is(redis_url: str) -> None:
    async with api(redis_url, script("Fine."), hang_at=1) as it:
        told = (await overtaken(it, it.post(CHAT, CHATTED))).json["memory"]
        assert (told["write_event_id"], told["error"]) == (
            None,
            "The user's memories were erased during this chat; this turn will not be remembered.",
        )
        assert await keys_with_the_secret(redis_url) == []
        assert (await it.post(CHAT, CHATTED)).json["memory"]["write_event_id"] is not None


async def test_a_chat_of_another_agent_is_remembered(redis_url: str) -> None:
    async with api(redis_url, script("Fine."), hang_at=1) as it:
        body = CHATTED | {"memory": {"user_id": "alice", "agent_id": "b"}}
        chat = asyncio.create_task(it.post(CHAT, body))
        await it.rig.engine.hanging.wait()
        assert (await it.call("DELETE", f"{ERASE}&agent_id=a")).status == 200
        it.rig.engine.let_go.set()
        assert (await chat).json["memory"]["write_event_id"] is not None


async def test_the_answer_of_a_chat_that_an_erasure_overtakes_is_not_kept(redis_url: str) -> None:
    async with api(redis_url, script(f"You said {SECRET}."), hang_at=1) as it:
        headers = {"Idempotency-Key": "k"}
        await overtaken(it, it.call("POST", CHAT, CHATTED, headers=headers))
        assert await keys_with_the_secret(redis_url) == []
        again = [await it.call("POST", CHAT, CHATTED, headers=headers) for _ in range(2)]
        assert ["Idempotent-Replayed" in answer.headers for answer in again] == [False, True]


@pytest.mark.parametrize("background", [False, True])
async def test_a_read_that_saves_to_a_user_ends_with_the_users_erasure(redis_url: str, background: bool) -> None:
    saves = {"save_to_memory": {"user_id": "alice"}}
    async with api(redis_url, reader, hang_at=1) as it, it.rig.working():
        if background:
            read_id = await queued(it, **saves)
            await it.rig.engine.hanging.wait()
            await erase(it)
            it.rig.engine.let_go.set()
            assert (await it.get(f"/v1/long-read/{read_id}")).status == 404
        else:
            read = asyncio.create_task(it.post("/v1/long-read", asked(**saves)))
            await it.rig.engine.hanging.wait()
            await erase(it)
            it.rig.engine.let_go.set()
            assert ((await read).status, (await read).error["code"]) == (404, "not_found")
        assert (await it.get("/v1/long-read")).json["data"] == []
        assert (await it.get(f"/v1/memory/events?{ERASE.partition('?')[2]}")).json["data"] == []
        assert (await it.rig.writes.lanes.depth()).jobs == 0


class SlowWay(StoreClient):
    """A store that a batch reaches when it is let go."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.reached, self.let_go = asyncio.Event(), asyncio.Event()

    async def add_batch(self, request: StoreBatch) -> BatchResult:
        """Send it later."""
        self.reached.set()
        await self.let_go.wait()
        return await super().add_batch(request)


async def test_a_batch_that_reaches_the_store_after_an_erasure_is_refused_for_the_erased_user(
    redis_url: str, store_url: str
) -> None:
    async with api(redis_url, script(500), store_url=store_url) as it, SlowWay(store_url) as slow:
        adds = tuple(BatchedAdd(user_id=user, messages=turns(SECRET)) for user in ("alice", "bob"))
        memory = replace(it.gateway.memory, store=slow)
        principal = Principal("local", frozenset({"memory:read", "memory:write"}))
        sent = asyncio.create_task(write_batch(MemoryBatch(adds=adds), memory, principal))
        await slow.reached.wait()
        await erase(it)
        slow.let_go.set()

        of_alice, of_bob = (await sent).results
        assert of_alice.error is not None
        assert (of_alice.memories, of_alice.error.code) == ((), "erased")
        assert [written.item.memory for written in of_bob.memories] == [SECRET]
        [after] = (await write_batch(MemoryBatch(adds=adds[:1]), memory, principal)).results
        assert [written.item.memory for written in after.memories] == [SECRET]


async def test_lines_of_an_import_that_come_after_an_erasure_are_refused(redis_url: str, store_url: str) -> None:
    async with api(redis_url, script(500), store_url=store_url) as it:
        assert (await it.post("/v1/memory/add", {**said("a fact"), "infer": False})).status == 200
        [line, _] = (await exported(it)).splitlines()
        item_id = orjson.loads(line)["item"]["id"]
        lines = [
            line.decode().replace("a fact", f"{SECRET} {number}").replace(item_id, f"{item_id[:-4]}{number:04x}")
            for number in range(2 * MAX_LINES)
        ]
        half_is_stored = asyncio.Event()

        async def body() -> AsyncGenerator[bytes]:
            yield "".join(f"{line}\n" for line in lines[:MAX_LINES]).encode()
            await half_is_stored.wait()
            yield "\n".join(lines[MAX_LINES:]).encode()

        async def imported() -> Answer:
            async with it.gateway.http.post(f"{it.gateway.url}/v1/memory/import", data=body()) as response:
                return Answer(response.status, response.headers, await response.read())

        async def is_stored() -> bool:
            return SECRET.encode() in await exported(it)

        answer = asyncio.create_task(imported())
        await eventually(is_stored)
        await erase(it)
        half_is_stored.set()

        assert (await answer).json["failed"] == MAX_LINES
        assert SECRET.encode() not in await exported(it)


def said(text: str, user: str = "alice") -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], "user_id": user}


def decided(body: Body) -> Reply:
    """The engine fails for one text, talks nonsense about another, and wants to hear more after a third."""
    asked_for = str(body)
    if "outage" in asked_for:
        return 503
    if "nonsense" in asked_for:
        return "What a lovely day."
    return tool_call("buffer_memory", reason="half a thought") if "half" in asked_for else add_memory("A fact.")


async def test_what_waits_in_any_state_of_the_queue_does_not_run_after_an_erasure(
    redis_url: str, store_url: str
) -> None:
    async with api(redis_url, decided, store_url=store_url, job_retry_s=0.5, job_attempts=1) as it:
        kept = it.rig.work.memory.kept
        async with it.rig.working():
            for text, user in (("nonsense", "kept"), ("half", "buffered")):
                await it.decided(said(f"{text} {SECRET}", user))
            failing = (await it.post("/v1/memory/add", said(f"outage {SECRET}", "delayed"))).json["event_id"]
            await eventually(lambda: has_failed_once(it, failing))
        assert (await it.post("/v1/memory/add", said(f"Waits. {SECRET}", "queued"))).status == 202
        [event] = await it.rig.writes.events.newest(Namespace(tenant="local", user_id="kept"), limit=9)
        assert event.status == "kept_verbatim"

        for user in ("kept", "buffered", "delayed", "queued"):
            assert (await it.call("DELETE", f"/v1/memory?user_id={user}")).status == 200

        with pytest.raises(NotFound):
            await kept.redecide(it.rig.writes, event.event_id, tenant="local")
        assert (await it.post("/v1/memory/buffers/flush", {"user_id": "buffered"})).status == 202
        async with it.rig.working():
            assert (await it.post("/v1/memory/add", said("Last.") | {"sync": True})).json["status"] == "completed"
            await eventually(lambda: is_idle(it))
        for user in ("kept", "buffered", "delayed", "queued"):
            assert await exported(it, user) == b'{"exported":0}\n'
        assert await keys_with_the_secret(redis_url) == []


async def has_failed_once(it: Api, event_id: str) -> bool:
    return (await it.get(f"/v1/memory/events/{event_id}")).json["error"] is not None


async def is_idle(it: Api) -> bool:
    return (await it.rig.writes.lanes.depth()).jobs == 0


async def test_no_trace_is_kept_of_a_write_that_is_erased_while_its_trace_is_made(redis_url: str) -> None:
    async with rig(redis_url, script(add_memory("A fact."))) as it:
        client = plain_redis.Redis.from_url(redis_url)  # pyright: ignore[reportUnknownMemberType]

        def erasing() -> Redact:
            client.delete(f"memloop:{{q0}}:job:{event_id}")
            return lambda text: text

        memory = it.work.memory
        await memory.traces.records.switch("local", on=True)
        work = replace(it.work, memory=replace(memory, traces=replace(memory.traces, new_redactor=erasing)))
        event_id = await it.write(SECRET)
        async with working(work, it.settings):
            await eventually(lambda: is_gone(it))
        client.close()
        assert [key for key in await keys_with_the_secret(redis_url) if "traces" in key] == []


async def is_gone(it: Rig) -> bool:
    return it.engine.calls != [] and (await it.writes.lanes.depth()).jobs == 0
