"""Every metric that the reference names is served by the process that feeds it, and is fed."""

import math
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from gateway.worker import build_app as build_worker
from tests.fakes.asgi_server import running
from tests.fakes.job_engine import Body, Reply, add_memory, engine_server, last_text
from tests.fakes.real_store import real_store
from tests.gateway.long_reads import asked
from tests.gateway.rig import eventually, settings_for
from tests.gateway.running import Gateway, question, running_gateway

GATEWAY = (
    'gateway_request_seconds_count{code="200",route="/v1/chat/completions"}',
    'gateway_overhead_seconds_count{route="/v1/chat/completions"}',
    "gateway_time_to_first_token_seconds_count",
    'gen_ai_client_token_usage_count{model="m",operation="chat",type="input"}',
    'gen_ai_client_token_usage_count{model="m",operation="chat",type="output"}',
    'gen_ai_client_token_usage_count{model="m",operation="long_read",type="output"}',
    'memory_search_seconds_count{stage="chat"}',
    'longread_chunks_total{strategy="memagent"}',
    "longread_chunk_seconds_count",
    'longread_ended_total{outcome="completed"}',
    'longread_ended_total{outcome="failed"}',
    'upstream_errors_total{kind="engineerror",model="m"}',
    "event_loop_lag_seconds_count",
)
WORKER = (
    'gen_ai_client_token_usage_count{model="m",operation="memory_write",type="input"}',
    'gen_ai_client_token_usage_count{model="m",operation="long_read",type="output"}',
    'memory_action_total{action="add"}',
    'memory_tool_parse_total{path="native"}',
    'longread_chunks_total{strategy="memagent"}',
    "longread_chunk_seconds_count",
    'longread_ended_total{outcome="completed"}',
    'upstream_errors_total{kind="engineerror",model="m"}',
    "event_loop_lag_seconds_count",
    "jobs_redis_used_bytes",
    "jobs_redis_limit_bytes",
)
AT_REST = (
    "longread_active",
    "longread_resumed_total",
    "memory_queue_depth",
    "memory_oldest_job_seconds",
    "memory_dead_letters_total",
    'memory_writes_refused_total{status="400"}',
    "job_dead_letters",
    "memory_recall_failed_total",
    "memory_turns_not_queued_total",
    "gateway_fullness_ratio",
    'upstream_circuit_open{engine="0",model="m"}',
    'gateway_active_requests{lane="batch"}',
    'memory_tool_parse_total{path="failed"}',
    'longread_webhooks_total{outcome="dead"}',
    "upstream_abort_total",
)
"""Served from the start; other tests feed them."""
STORE = (
    'memory_search_seconds_count{stage="total"}',
    'memory_search_seconds_count{stage="embed"}',
    'memory_search_seconds_count{stage="vectors"}',
    'memory_store_request_seconds_count{code="200",route="/v1/items/search"}',
    "memory_store_embed_seconds_count",
    "event_loop_lag_seconds_count",
)
BREAKS = "break"


def _answer(body: Body) -> Reply:
    if BREAKS in str(body["messages"]):
        return 500
    if body.get("tools"):
        return add_memory("Likes tea.")
    return r"\boxed{In Rome.}" if "boxed" in last_text(body) else "a memory"


@dataclass(frozen=True)
class Stack:
    """Gateway, worker and store, each on its own port."""

    gateway: Gateway
    worker_url: str
    store_url: str

    async def samples(self, url: str) -> Mapping[str, float]:
        """The samples that a process serves."""
        async with self.gateway.http.get(f"{url}/metrics") as response:
            lines = (await response.text()).splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncGenerator[Stack]:
    async with _running(redis_url, tmp_path) as running_stack:
        yield running_stack


@asynccontextmanager
async def _running(redis_url: str, folder: Path) -> AsyncGenerator[Stack]:
    async with AsyncExitStack() as opened:
        engine = await opened.enter_async_context(engine_server(_answer))
        store = await opened.enter_async_context(real_store(redis_url, folder))
        settings = settings_for(redis_url, engine_url=engine.url, store_url=store)
        gateway = await opened.enter_async_context(running_gateway(settings))
        worker = await opened.enter_async_context(running(build_worker(settings)))
        yield Stack(gateway, worker, store)


async def _use(gateway: Gateway) -> None:
    """A chat, a stream, a read and a write; and each of them with an engine that breaks."""
    await gateway.chat("Hi.", memory={"user_id": "u1"})
    await gateway.chat("Hi.", stream=True)
    for word in ("Where?", BREAKS):
        await gateway.chat(word)
        await gateway.post("/v1/long-read", asked(question=word))
        await gateway.post("/v1/long-read", asked(question=word, background=True))


async def test_every_documented_metric_is_fed_in_its_process(stack: Stack) -> None:
    await _use(stack.gateway)

    async def fed(url: str, names: tuple[str, ...]) -> list[str]:
        samples = await stack.samples(url)
        return [name for name in names if not samples.get(name)]

    async def all_fed() -> bool:
        places = ((stack.gateway.url, GATEWAY), (stack.worker_url, WORKER), (stack.store_url, STORE))
        return not [name for url, names in places for name in await fed(url, names)]

    await eventually(all_fed)
    for url in (stack.gateway.url, stack.worker_url):
        assert set(AT_REST) <= set(await stack.samples(url))


async def test_every_queue_has_its_gauges_on_the_worker(stack: Stack) -> None:
    gauges = ("job_queue_depth", "job_queue_oldest_seconds", "job_queue_waiting_seconds")

    async def shown() -> bool:
        samples = await stack.samples(stack.worker_url)
        queues = ("memory", "reads", "files", "responses", "webhooks")
        return all(f'{gauge}{{queue="{queue}"}}' in samples for gauge in gauges for queue in queues)

    await eventually(shown)


async def test_workers_gauges_are_nan_on_the_api(stack: Stack) -> None:
    """A zero of the API's would say that Redis is not durable."""

    async def durable() -> bool:
        return (await stack.samples(stack.worker_url))["jobs_redis_durable"] in {0.0, 1.0}

    await eventually(durable)
    api = await stack.samples(stack.gateway.url)
    unknown = ("jobs_redis_durable", "jobs_redis_used_bytes", "jobs_redis_limit_bytes", "job_dead_letters")
    assert all(math.isnan(api[name]) for name in unknown)


async def test_no_label_holds_a_user(stack: Stack) -> None:
    await stack.gateway.post("/v1/chat/completions", question(memory={"user_id": "alice-4711"}))
    for url in (stack.gateway.url, stack.worker_url, stack.store_url):
        async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics") as response:
            assert not re.search("alice-4711", await response.text())
