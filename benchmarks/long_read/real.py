"""On a real vLLM: overhead against its own count of its time, its batch under many reads, and how soon it stops."""

import asyncio
import re
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from benchmarks.long_read.client import Client, client_of, now_s
from benchmarks.long_read.full_length import planted
from benchmarks.long_read.stack import Stack, running_stack
from benchmarks.long_read_strategies.engine import MODEL
from trainer.tiny.documents import Document

AT_ONCE: Final = 32
_SAMPLE_S: Final = 0.2
_RUNNING: Final = "vllm:num_requests_running"
_WAITING: Final = "vllm:num_requests_waiting"
_BUSY_S: Final = "vllm:e2e_request_latency_seconds_sum"


@dataclass(frozen=True, slots=True)
class Gauges:
    """The engine's own metrics."""

    http: aiohttp.ClientSession
    url: str

    async def value(self, name: str) -> float:
        """The sum of a metric over its labels."""
        async with self.http.get(self.url.removesuffix("/v1") + "/metrics") as response:
            text = await response.text()
        return sum(float(found) for found in re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


async def measured(engine_url: str, *, tokens: int, seed: int) -> dict[str, object]:
    """Everything of this module, with documents of so many tokens."""
    made = await asyncio.to_thread(planted, tokens, seed=seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_stack(engine_url, model=MODEL, profile="tiny", reads_at_once=AT_ONCE) as stack,
    ):
        path = Path(folder) / "document.txt"
        path.write_text("".join(chunk.text for chunk in made.chunks))
        async with client_of(stack.url) as client, aiohttp.ClientSession() as http:
            gauges, file_id = Gauges(http, engine_url), await client.upload(path)
            await client.finished(await client.begin(file_id, question=made.question, model=MODEL))  # warms the engine
            alone = await _alone(client, stack, gauges, file_id, made)
            many = await _many(client, gauges, file_id, made)
            stops = [await _stop_s(client, gauges, file_id, made) for _ in range(5)]
    return {**alone, **many, "stop_s_worst": round(max(stops), 2)}


async def _alone(client: Client, stack: Stack, gauges: Gauges, file_id: str, made: Document) -> dict[str, object]:
    """One read: its wall time beyond the engine's own, and the worker's processor time."""
    busy, cpu = await gauges.value(_BUSY_S), stack.cpu_s["worker"]
    done = await client.finished(await client.begin(file_id, question=made.question, model=MODEL))
    busy, cpu = await gauges.value(_BUSY_S) - busy, stack.cpu_s["worker"] - cpu
    return {
        "chunks": done.chunks,
        "right": done.record["output_text"] == made.answer,
        "read_s": round(done.seconds, 2),
        "engine_s": round(busy, 2),
        "overhead_pct": round(100 * (done.seconds / busy - 1), 2),
        "engine_ms_per_call": round(1000 * busy / (done.chunks + 1), 1),
        "cpu_ms_per_chunk": round(1000 * cpu / done.chunks, 2),
    }


async def _many(client: Client, gauges: Gauges, file_id: str, made: Document) -> dict[str, object]:
    """``AT_ONCE`` reads side by side: the requests that the engine runs, and holds, while all of them read."""
    ids = [
        await client.begin(file_id, question=f"{made.question} ({number})", model=MODEL) for number in range(AT_ONCE)
    ]
    running: list[float] = []
    held: list[float] = []
    reading = asyncio.gather(*(client.finished(read_id) for read_id in ids))
    while not reading.done():
        running.append(await gauges.value(_RUNNING))
        held.append(running[-1] + await gauges.value(_WAITING))
        await asyncio.sleep(_SAMPLE_S)
    steady = slice(len(held) // 4, max(len(held) // 4 + 1, len(held) * 3 // 4))
    return {
        "reads_at_once": AT_ONCE,
        "engine_running_median": statistics.median(running[steady]),
        "engine_running_most": max(running),
        "engine_holds_median": statistics.median(held[steady]),
    }


async def _stop_s(client: Client, gauges: Gauges, file_id: str, made: Document) -> float:
    """Seconds from the cancel to an engine without a request."""
    read_id = await client.begin(file_id, question=made.question, model=MODEL)
    await _until(lambda: client.progress(read_id), lambda done: done >= 3)
    began = now_s()
    await client.cancel(read_id)
    await _until(lambda: gauges.value(_RUNNING), lambda running: running == 0, confirm=5)
    return now_s() - began - 5 * _SAMPLE_S / 4


async def _until(ask: Callable[[], Awaitable[float]], holds: Callable[[float], bool], *, confirm: int = 0) -> None:
    """Ask until it holds, and then ``confirm`` times more in a row."""
    in_row = 0
    while in_row <= confirm:
        in_row = in_row + 1 if holds(await ask()) else 0
        await asyncio.sleep(_SAMPLE_S / 4)
