"""Engines join, drain and die under a real gateway's load, and reads keep their replica.

The gateway and the engines are processes of their own; the engines are scripted. Run by ``make test-balancing``.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from tests.fakes.recall_store import fake_store
from tests.fakes.service_process import ServiceProcess, started
from tests.gateway.replica_rig import EngineProcess, engine_processes, kept_places
from tests.gateway.running import CHAT, question

CALLERS: Final = 12
JOIN_S, LEAVE_S, WINDOW_S = 10.0, 2.0, 5.0
READ: Final = {"document": {"text": "one two three four. " * 400}, "chunk_tokens": 100, "strategy": "memagent"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass
class Load:
    """Callers that chat all the time. ``failed`` holds when each failure came, and what it was."""

    done: int = 0
    failed: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    async def call(self, http: aiohttp.ClientSession, url: str, *, stream: bool) -> None:
        while True:
            async with http.post(url + CHAT, json=question(stream=stream, memory={"mode": "off"})) as answer:
                raw = await answer.read()
            if answer.status == 200 and (not stream or raw.endswith(b"data: [DONE]\n\n")):
                self.done += 1
            else:
                self.failed.append((time.time(), f"{answer.status} {raw[-200:].decode()}"))


@asynccontextmanager
async def loaded(url: str, *, callers: int = CALLERS, stream: bool = True) -> AsyncGenerator[Load]:
    load = Load()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        tasks = [asyncio.create_task(load.call(http, url, stream=stream)) for _ in range(callers)]
        try:
            yield load
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def gateway_over(
    engines: Sequence[EngineProcess], redis_url: str, folder: Path
) -> AsyncGenerator[ServiceProcess]:
    async with fake_store() as store:
        environment = {
            "MEMLOOP_REDIS_URL": redis_url,
            "MEMLOOP_STORE_URL": store.url,
            "MEMLOOP_ENGINE_URL": ",".join(engine.url for engine in engines),
            "MEMLOOP_ENGINE_DIALECT": "vllm",
            "MEMLOOP_MODEL": "m",
        }
        async with started("gateway.main", folder, environment) as gateway:
            yield gateway


async def counts_in(engines: Sequence[EngineProcess], window_s: float) -> list[int]:
    """The requests that each engine got within the next seconds."""
    before = [len(engine.begun) for engine in engines]
    await asyncio.sleep(window_s)
    return [len(engine.begun) - count for engine, count in zip(engines, before, strict=True)]


def show(title: str, rows: Mapping[str, object]) -> None:
    print(f"\n{title}", *(f"  {name:<58} {value}" for name, value in rows.items()), sep="\n", flush=True)


async def test_replicas_join_drain_and_die_under_load(redis_url: str, tmp_path: Path) -> None:
    async with (
        engine_processes(tmp_path, 3, running=1) as engines,
        gateway_over(engines, redis_url, tmp_path) as gateway,
        loaded(gateway.url) as load,
    ):
        alone = await counts_in(engines, WINDOW_S)
        for engine in engines[1:]:
            await engine.start()
        await asyncio.sleep(JOIN_S)
        shared = await counts_in(engines, WINDOW_S)
        engines[0].drain()
        await asyncio.sleep(LEAVE_S)
        drained = await counts_in(engines, WINDOW_S)
        cut = len(load.failed)
        killed_at = time.time()
        await engines[1].kill()
        left = await counts_in(engines, WINDOW_S)
        lost = load.failed[cut:]
        show(
            f"replicas under {CALLERS} callers that stream; requests per engine in {WINDOW_S:g} s",
            {
                "one engine runs": alone,
                f"{JOIN_S:g} s after two more have started": shared,
                f"{LEAVE_S:g} s after the first began to drain": drained,
                "streams cut or chats failed so far": cut,
                "after the second was killed": left,
                "requests that it had begun and not ended": engines[1].unfinished,
                "chats failed": len(lost),
                "last of them after the kill, s": f"{max((at for at, _ in lost), default=killed_at) - killed_at:.1f}",
                "chats served in all": load.done,
            },
        )
    mean = sum(shared) / len(shared)
    assert alone[1:] == [0, 0]
    assert all(abs(count - mean) <= 0.2 * mean for count in shared)
    assert (drained[0], cut) == (0, 0)
    assert len(lost) <= engines[1].unfinished + 1  # one may have arrived and not begun
    assert left[2] > 0


async def test_reads_keep_their_replica(redis_url: str, tmp_path: Path) -> None:
    async with (
        engine_processes(tmp_path, 4, running=4, seconds=0.05) as engines,
        gateway_over(engines, redis_url, tmp_path) as gateway,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
    ):

        async def read(number: int) -> str:
            body = {"question": f"read-{number}: Where?", **READ}
            async with http.post(f"{gateway.url}/v1/long-read", json=body) as answer:
                return (await answer.json())["status"]

        async with loaded(gateway.url, callers=4):
            states = await asyncio.gather(*(read(number) for number in range(16)))
        kept, steps = kept_places(engines)
        per_engine = [sum(begun.read != "-" for begun in engine.begun) for engine in engines]
        rows = {"chunks with one before them": steps, "read by the same engine": f"{100 * kept / steps:.1f} %"}
        show("16 reads at once over four engines, beside four chats", rows | {"chunks per engine": per_engine})
    assert set(states) == {"completed"}
    assert kept / steps >= 0.9


async def test_throughput_grows_with_the_replicas(redis_url: str, tmp_path: Path) -> None:
    rates: dict[int, float] = {}
    for count in (1, 2, 4):
        folder = tmp_path / str(count)
        folder.mkdir()
        async with (
            engine_processes(folder, count, running=count, slots=2, seconds=0.1) as engines,
            gateway_over(engines, redis_url, folder) as gateway,
            loaded(gateway.url, callers=16, stream=False) as load,
        ):
            await asyncio.sleep(1.0)
            before = load.done
            await asyncio.sleep(WINDOW_S)
            rates[count] = (load.done - before) / WINDOW_S
            assert not load.failed
    rows = {f"{count} engines": f"{rate:.0f} chats/s, {rate / rates[1]:.2f} times one" for count, rate in rates.items()}
    show("scripted engines that serve two requests at a time, 0.1 s each", rows)
    assert rates[2] >= 1.6 * rates[1]
    assert rates[4] >= 2.8 * rates[1]
