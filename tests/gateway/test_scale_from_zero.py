"""An engine with no replica: what its absence refuses, what waits for it, and what KEDA reads of it.

Gateway and worker are processes, Redis and the memory store are real. The query is the one that the chart renders:
tests/deploy/chart compares them.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.job_engine import Body, EngineServer, Reply, add_memory
from tests.fakes.ports import free_port
from tests.fakes.real_store import real_store
from tests.fakes.service_process import ServiceProcess, started
from tests.fakes.web_server import serving
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, question

QUERY = Path(__file__).parents[1] / "deploy/chart/golden/engine_demand.promql"
FACT = "Ada lives in Rome."
ADD, SEARCH = "/v1/memory/add", "/v1/memory/search"
POLL_S = 0.25
DEPTH = r"sum\(max by \(queue\) \((?P<gauge>\w+)\{(?P<of>.*?)\}\)\)"
INCREASE = r"\(sum\(increase\((?P<counter>\w+)\{(?P<chosen>.*?)\}\[5m\]\)\) or vector\(0\)\)"
Scrape = Mapping[str, list[Metric]]
"""The metrics of each job."""


@dataclass(frozen=True)
class Zero:
    """A gateway and a worker, whose engine has an address and no process."""

    http: aiohttp.ClientSession
    processes: Mapping[str, ServiceProcess]
    query: str
    engine_port: int

    async def post(self, path: str, body: object) -> tuple[int, Mapping[str, str], Any]:
        async with self.http.post(self.processes["gateway"].url + path, json=body) as answer:
            return answer.status, answer.headers, await answer.json()

    async def scrape(self) -> Scrape:
        found: dict[str, list[Metric]] = {}
        for job, process in self.processes.items():
            async with self.http.get(f"{process.health_url}/metrics") as answer:
                found[job] = list(text_string_to_metric_families(await answer.text()))
        return found

    async def until_demanded(self, wanted: float, *, since: Scrape) -> None:
        """Wait for a value of the query; the gauges of the queues are set every few seconds."""

        async def is_so() -> bool:
            await asyncio.sleep(POLL_S)
            return self.demand(await self.scrape(), before=since) == wanted

        await eventually(is_so, timeout_s=60)

    def demand(self, now: Scrape, *, before: Scrape) -> float:
        """The value of the query when its five minutes began at ``before``."""
        assert re.fullmatch(f"{DEPTH}(?: \\+ {INCREASE})+", self.query), self.query
        [depth] = re.finditer(DEPTH, self.query)
        waiting = total(now, depth["gauge"], depth["of"])
        counted = [(each["counter"], each["chosen"]) for each in re.finditer(INCREASE, self.query)]
        return waiting + sum(total(now, *each) - total(before, *each) for each in counted)


def total(scrape: Scrape, name: str, selector: str) -> float:
    """The sum of the samples that a selector chooses; what the cluster adds to labels is left out."""
    chosen = {label: (how, value) for label, how, value in re.findall(r'(\w+)(=~|!=|=)"(.*?)"', selector)}
    _, job = chosen.pop("job")
    chosen = {label: test for label, test in chosen.items() if label not in ("namespace", "pod")}
    return sum(
        sample.value
        for metric in scrape[job]
        for sample in metric.samples
        if sample.name == name and all(_fits(sample.labels[label], *test) for label, test in chosen.items())
    )


def _fits(value: str, how: str, wanted: str) -> bool:
    if how == "=~":
        return re.fullmatch(wanted, value) is not None
    return (value == wanted) is (how == "=")


def answered(body: Body) -> Reply:
    """Memories are kept where tools are offered; a chat gets a text."""
    return add_memory(FACT) if body.get("tools") else "Hello."


@asynccontextmanager
async def at_zero(redis_url: str, folder: Path) -> AsyncGenerator[Zero]:
    async with AsyncExitStack() as stack:
        port = free_port()
        environment = {
            "MEMLOOP_REDIS_URL": redis_url,
            "MEMLOOP_STORE_URL": await stack.enter_async_context(real_store(redis_url, folder / "store")),
            "MEMLOOP_ENGINE_URL": f"http://127.0.0.1:{port}/v1",
            "MEMLOOP_MODEL": "m",
            "MEMLOOP_STARTUP_WAIT_S": "0",
        }
        processes = {
            job: await stack.enter_async_context(started(f"gateway.{module}", folder, environment))
            for job, module in (("gateway", "main"), ("worker", "worker"))
        }
        http = await stack.enter_async_context(aiohttp.ClientSession())
        yield Zero(http, processes, QUERY.read_text().strip(), port)


async def test_refused_chats_and_queued_work_wake_an_engine_that_then_serves_them(
    redis_url: str, tmp_path: Path
) -> None:
    engine = EngineServer(answered)
    async with at_zero(redis_url, tmp_path) as it:
        idle = await it.scrape()
        assert it.demand(idle, before={"gateway": [], "worker": []}) == 0, "looking for the engine is no demand"

        status, headers, refused = await it.post(CHAT, question("Hi."))
        assert (status, refused["error"]["type"]) == (503, "upstream_error")
        assert int(headers["Retry-After"]) >= 1
        after_chat = await it.scrape()
        assert it.demand(after_chat, before=idle) == 1

        messages = [{"role": "user", "content": FACT}]
        status, _, _ = await it.post(ADD, {"user_id": "u1", "messages": messages})
        assert status == 202
        await it.until_demanded(1, since=after_chat)

        routes = [web.post("/v1/chat/completions", engine.complete), web.get("/v1/models", engine.models)]
        async with serving(routes, port=it.engine_port):

            async def kept() -> bool:
                await asyncio.sleep(POLL_S)
                _, _, found = await it.post(SEARCH, {"user_id": "u1", "query": "Rome"})
                return FACT in str(found)

            async def served() -> bool:
                return (await it.post(CHAT, question("Hi.")))[0] == 200

            await eventually(kept, timeout_s=60)
            await eventually(served, timeout_s=60)
            done = await it.scrape()
            assert it.demand(done, before=after_chat) > 1, "calls keep the engine for five minutes"

            await it.until_demanded(0, since=done)
