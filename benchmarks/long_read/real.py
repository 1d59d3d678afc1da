"""Measures a real vLLM: overhead against its own timing, its batch under many reads, and the delay of a cancel."""

import asyncio
import re
import statistics
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from benchmarks.long_read.full_length import planted
from benchmarks.long_read.reads import Finished, client_of, finished, now_s, request, uploaded
from benchmarks.long_read.stack import Stack, running_stack
from benchmarks.tiny_engine import MODEL
from memloop_clients import GatewayClient

AT_ONCE: Final = 32
_SAMPLE_S: Final = 0.2
_STOPS: Final = 5
_IDLE_S: Final = 20.0
_CONFIRM: Final = 5
_RUNNING: Final = "vllm:num_requests_running"
_WAITING: Final = "vllm:num_requests_waiting"
_BUSY_S: Final = "vllm:e2e_request_latency_seconds_sum"


@dataclass(frozen=True, slots=True)
class Reading:
    """A document, the served model and the profile of a read."""

    document: str
    question: str
    model: str = MODEL
    profile: str = "tiny"


@dataclass(frozen=True, slots=True)
class Gauges:
    """The engine's own metrics."""

    http: aiohttp.ClientSession
    url: str

    async def value(self, name: str) -> float:
        """Sum a metric over its labels."""
        async with self.http.get(self.url.removesuffix("/v1") + "/metrics") as response:
            text = await response.text()
        return sum(float(found) for found in re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one uploaded document while watching worker and engine."""

    client: GatewayClient
    stack: Stack
    gauges: Gauges
    reading: Reading
    file_id: str

    async def read(self, *, mark: str = "") -> Finished:
        """Run one read to its end; a mark makes its prompts unique."""
        return await finished(self.client, await self._begin(mark))

    async def alone(self) -> dict[str, object]:
        """Measure one read: wall time beyond the engine's own, and the worker's CPU time, total and beyond idle."""
        idle = await self._idle_cpu_per_s()
        busy, cpu = await self.gauges.value(_BUSY_S), self.stack.cpu_s["worker"]
        done = await self.read()
        busy, cpu = await self.gauges.value(_BUSY_S) - busy, self.stack.cpu_s["worker"] - cpu
        return {
            "chunks": done.chunks,
            "answer": done.read.output_text,
            "read_s": round(done.seconds, 2),
            "engine_s": round(busy, 2),
            "overhead_pct": round(100 * (done.seconds / busy - 1), 2),
            "engine_ms_per_call": round(1000 * busy / (done.chunks + 1), 1),
            "cpu_ms_per_chunk": round(1000 * cpu / done.chunks, 2),
            "cpu_ms_per_chunk_beyond_idle": round(1000 * (cpu - idle * done.seconds) / done.chunks, 2),
            "worker_idle_cpu_ms_per_s": round(1000 * idle, 2),
        }

    async def _idle_cpu_per_s(self) -> float:
        """Measure the worker's idle CPU: polling queues, heartbeats, metrics."""
        began = self.stack.cpu_s["worker"]
        await asyncio.sleep(_IDLE_S)
        return (self.stack.cpu_s["worker"] - began) / _IDLE_S

    async def many(self) -> dict[str, object]:
        """Run ``AT_ONCE`` concurrent reads; return the requests that the engine runs and queues meanwhile."""
        running: list[float] = []
        held: list[float] = []
        reading = asyncio.gather(*(self.read(mark=f" ({number})") for number in range(AT_ONCE)))
        while not reading.done():
            running.append(await self.gauges.value(_RUNNING))
            held.append(running[-1] + await self.gauges.value(_WAITING))
            await asyncio.sleep(_SAMPLE_S)
        steady = slice(len(held) // 4, max(len(held) // 4 + 1, len(held) * 3 // 4))
        return {
            "reads_at_once": len(await reading),
            "engine_running_median": statistics.median(running[steady]),
            "engine_running_most": max(running),
            "engine_holds_median": statistics.median(held[steady]),
        }

    async def stop_s(self) -> float:
        """Return the seconds from a cancel until the engine has no requests."""
        read_id = await self._begin("")
        await _until(lambda: self._chunks_done(read_id), lambda done: done >= 3)
        began = now_s()
        await self.client.cancel_read(read_id)
        await _until(lambda: self.gauges.value(_RUNNING), lambda running: running == 0, confirm=_CONFIRM)
        return now_s() - began - _CONFIRM * _SAMPLE_S / 4

    async def _begin(self, mark: str) -> str:
        reading = self.reading
        asked = request(self.file_id, question=reading.question + mark, model=reading.model)
        return await self.client.queue_read(asked)

    async def _chunks_done(self, read_id: str) -> int:
        return (await self.client.read(read_id)).progress.chunks_done


@asynccontextmanager
async def reader_on(engine_url: str, reading: Reading) -> AsyncGenerator[Reader]:
    """Start a stack on this engine, upload the document, warm the engine."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_stack(engine_url, model=reading.model, profile=reading.profile, reads_at_once=AT_ONCE) as stack,
    ):
        path = Path(folder) / "document.txt"
        path.write_text(reading.document)
        async with client_of(stack.url) as client, aiohttp.ClientSession() as http:
            reader = Reader(client, stack, Gauges(http, engine_url), reading, await uploaded(client, path))
            await reader.read()
            yield reader


async def measured(engine_url: str, *, tokens: int, seed: int) -> dict[str, object]:
    """Run all measurements on the tiny model, with documents of ``tokens`` tokens."""
    made = await asyncio.to_thread(planted, tokens, seed=seed)
    reading = Reading("".join(chunk.text for chunk in made.chunks), made.question)
    async with reader_on(engine_url, reading) as reader:
        alone = await reader.alone()
        many = await reader.many()
        stops = [await reader.stop_s() for _ in range(_STOPS)]
    return {**alone, "right": alone["answer"] == made.answer, **many, "stop_s_worst": round(max(stops), 2)}


async def _until(ask: Callable[[], Awaitable[float]], holds: Callable[[float], bool], *, confirm: int = 0) -> None:
    """Poll until the condition holds, and then ``confirm`` more times in a row."""
    in_row = 0
    while in_row <= confirm:
        in_row = in_row + 1 if holds(await ask()) else 0
        await asyncio.sleep(_SAMPLE_S / 4)
