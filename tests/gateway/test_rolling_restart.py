"""Real gateways and workers, stopped and started one by one under load: no request fails, no job is lost.

Run by ``make test-rolling``.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.fakes.balancer import balanced
from tests.fakes.job_engine import add_memory, last_text
from tests.fakes.job_store import StoreServer, store_server
from tests.fakes.service_process import ServiceProcess
from tests.fakes.web_server import serving
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, question

DRAIN_S = 1.0
STREAM_PIECES, STREAM_PAUSE_S = 20, 0.05
ANSWER_S = 0.05
LEASE_S = 30.0
"""The default of ``MEMLOOP_LANE_TTL_S`` and ``MEMLOOP_JOB_IDLE_S``: what a job of a killed worker waits."""
ADD, READ = "/v1/memory/add", "/v1/long-read"
DOCUMENT = "one two three four. " * 60

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


async def complete(request: web.Request) -> web.StreamResponse:
    """An engine that takes its time: a stream of a second, a memory to keep, or a text."""
    body = await request.json()
    if body.get("stream"):
        return await _streamed(request)
    await asyncio.sleep(ANSWER_S)
    text = last_text(body)
    message = add_memory(_fact(text)) if body.get("tools") else _text(r"\boxed{Rome}" if "boxed" in text else "seen")
    reason = "tool_calls" if body.get("tools") else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return web.json_response({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})


def _text(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def _fact(text: str) -> str:
    return next((word for word in text.replace('"', " ").split() if word.startswith("fact-")), "fact-none")


async def _streamed(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(STREAM_PIECES):
        chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "word "}}]}
        await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await asyncio.sleep(STREAM_PAUSE_S)
    await response.write(b"data: [DONE]\n\n")
    return response


async def models(request: web.Request) -> web.Response:
    del request
    return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})


@dataclass
class World:
    """What the processes share."""

    folder: Path
    environment: dict[str, str]
    store: StoreServer

    async def gateway(self, *, port: int | None = None, **settings: str) -> ServiceProcess:
        return await ServiceProcess.start("gateway.main", self.folder, self.environment | settings, port=port)

    async def worker(self) -> ServiceProcess:
        return await ServiceProcess.start("gateway.worker", self.folder, self.environment)


@asynccontextmanager
async def world(redis_url: str, folder: Path) -> AsyncGenerator[World]:
    async with AsyncExitStack() as stack:
        routes = [web.post("/v1/chat/completions", complete), web.get("/v1/models", models)]
        engine = await stack.enter_async_context(serving(routes))
        store = await stack.enter_async_context(store_server())
        environment = {
            "MEMLOOP_REDIS_URL": redis_url,
            "MEMLOOP_STORE_URL": store.url,
            "MEMLOOP_ENGINE_URL": f"{engine}/v1",
            "MEMLOOP_MODEL": "m",
            "MEMLOOP_DRAIN_S": str(DRAIN_S),
            "MEMLOOP_STOP_WAIT_S": "0.3",
        }
        yield World(folder, environment, store)


@dataclass
class Load:
    """Clients that ask again as soon as they are answered, each on one kept connection."""

    url: str
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    done: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])
    facts: list[str] = field(default_factory=list[str])

    async def client(self, kind: str, ask: Callable[[aiohttp.ClientSession], Awaitable[None]]) -> None:
        connector = aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(self.url, connector=connector) as http:
            while not self.stop.is_set():
                try:
                    await ask(http)
                    self.done[kind] += 1
                except (aiohttp.ClientError, AssertionError, OSError, TimeoutError) as error:
                    self.failures.append(f"{kind}: {error!r}")

    async def chat(self, http: aiohttp.ClientSession) -> None:
        async with http.post(CHAT, json=question("Hello.", memory={"user_id": "u1"})) as answer:
            body = await answer.json()
            assert answer.status == 200, body
            assert body["choices"][0]["message"]["content"] == "seen"

    async def stream(self, http: aiohttp.ClientSession) -> None:
        async with http.post(CHAT, json=question("Hello.", stream=True, memory={"user_id": "u2"})) as answer:
            raw = await answer.read()
            assert answer.status == 200, raw
            assert (raw.count(b'"word "'), raw.count(b"[DONE]")) == (STREAM_PIECES, 1), raw[-300:]

    async def add(self, http: aiohttp.ClientSession) -> None:
        fact = f"fact-{len(self.facts)}-{time.monotonic_ns()}"
        body = {"messages": [{"role": "user", "content": fact}], "user_id": f"user{len(self.facts) % 7}"}
        async with http.post(ADD, json=body) as answer:
            assert answer.status == 202, await answer.read()
            self.facts.append(fact)

    async def read(self, http: aiohttp.ClientSession) -> None:
        body = {"model": "m", "question": "Where?", "document": {"text": DOCUMENT}, "chunk_tokens": 80, "stream": True}
        async with http.post(READ, json=body) as answer:
            raw = await answer.read()
            assert answer.status == 200, raw
            assert b"event: long_read.completed" in raw, raw[-300:]


@asynccontextmanager
async def under_load(url: str) -> AsyncGenerator[Load]:
    load = Load(url)
    kinds = {"chat": load.chat, "stream": load.stream, "add": load.add, "read": load.read}
    async with asyncio.TaskGroup() as group:
        for kind, ask in kinds.items():
            for _ in range(3):
                group.create_task(load.client(kind, ask))
        try:
            yield load
        finally:
            load.stop.set()


async def kept(it: World, facts: list[str], *, within_s: float) -> None:
    """Wait until the store has each fact as a memory, and none twice."""

    await eventually(lambda: set(facts) <= set(it.store.texts()), timeout_s=within_s)
    counts = Counter(it.store.texts())
    assert [fact for fact in facts if counts[fact] != 1] == []


def adds_of(it: World) -> int:
    """How often the store was asked to add a memory."""
    return sum(draft.memory_type != "RawTurn" for add in it.store.adds for draft in add.drafts)


async def test_gateways_restarted_one_by_one_under_load_fail_no_request(redis_url: str, tmp_path: Path) -> None:
    async with world(redis_url, tmp_path) as it:
        gateways = [await it.gateway() for _ in range(2)]
        worker = await it.worker()
        try:
            async with balanced([gateway.port for gateway in gateways]) as balancer, under_load(balancer.url) as load:
                await asyncio.sleep(2)
                for number, gateway in enumerate(gateways):
                    assert await gateway.stop() in (0, -15)
                    gateways[number] = await it.gateway(port=gateway.port)
                    await eventually(lambda port=gateway.port: port in balancer.ready)
                    await asyncio.sleep(1)
            await kept(it, load.facts, within_s=90)
        finally:
            for process in [*gateways, worker]:
                await process.stop()
    print(f"\n{dict(load.done)} answered, {len(load.failures)} failed")
    assert load.failures == []
    assert all(load.done[kind] >= 3 for kind in ("chat", "stream", "add", "read"))


async def test_workers_stopped_one_by_one_hand_their_jobs_over(redis_url: str, tmp_path: Path) -> None:
    async with world(redis_url, tmp_path) as it:
        gateway = await it.gateway()
        workers = [await it.worker() for _ in range(2)]
        load = Load(gateway.url)
        try:
            async with aiohttp.ClientSession(gateway.url) as http:
                for _ in range(150):
                    await load.add(http)
                for number, worker in enumerate(workers):
                    began = time.monotonic()
                    await worker.stop()
                    assert time.monotonic() - began < LEASE_S / 2
                    workers[number] = await it.worker()
            await kept(it, load.facts, within_s=LEASE_S / 2)
        finally:
            for process in [gateway, *workers]:
                await process.stop()
    assert adds_of(it) <= len(load.facts) + 1, "a job that was handed over goes on where it was"


async def test_two_gateways_keep_one_limit_exactly(redis_url: str, tmp_path: Path) -> None:
    async with world(redis_url, tmp_path) as it:
        gateways = [await it.gateway(MEMLOOP_REQUESTS_PER_MINUTE="20") for _ in range(2)]
        try:
            async with aiohttp.ClientSession() as http:

                async def status(number: int) -> int:
                    async with http.post(gateways[number % 2].url + CHAT, json=question("Hi.")) as answer:
                        return answer.status

                statuses = Counter(await asyncio.gather(*(status(number) for number in range(60))))
        finally:
            for process in gateways:
                await process.stop()
    assert statuses == {200: 20, 429: 40}
