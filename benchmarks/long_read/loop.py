"""Measures the reading loop's overhead beside its engine, with the bare calls as the floor.

Both sides post the same bodies in the same order to one mock engine of fixed latency. The floor only posts; ours is
``read_document`` through ``EngineClient``.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp
import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.mock_engine import REPLY, mock_engine
from memloop.loops.memagent import read_document
from memloop.ports import Chunk, Completion, HeldChunks, Prompt
from memloop.profiles import load_profile
from memloop_clients.engine import EngineClient, request_body

CHUNKS = 100
CHUNK_CHARS = 20_000
LATENCIES_S = (0.0, 0.02)
QUESTION = "Who keeps the key of the north gate?"


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall and CPU seconds of this process alone."""

    wall_s: float
    cpu_s: float


class _Recorder:
    """A ChatModel that records the bodies that the loop would post."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def complete(self, prompt: Prompt) -> Completion:
        self.bodies.append(orjson.dumps(request_body(prompt, model="mock")))
        return Completion(REPLY)


def document() -> HeldChunks:
    """Build ``CHUNKS`` chunks of prose of about 5,000 tokens each."""
    text = ("It was a quiet morning in the harbour, and nobody spoke. " * CHUNK_CHARS)[:CHUNK_CHARS]
    return HeldChunks(Chunk(i, i * CHUNK_CHARS, (i + 1) * CHUNK_CHARS, text, 5000) for i in range(CHUNKS))


async def measured(work: Callable[[], Awaitable[object]]) -> Cost:
    """Measure the cost of the work."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


async def floor(url: str, bodies: list[bytes]) -> Cost:
    """Measure the bare posts."""
    async with aiohttp.ClientSession() as session:

        async def post_all() -> None:
            for body in bodies:
                headers = {"content-type": "application/json"}
                async with session.post(f"{url}/chat/completions", data=body, headers=headers) as response:
                    orjson.loads(await response.read())

        await post_all()  # warms the connection and the server
        return await measured(post_all)


async def ours(url: str, chunks: HeldChunks) -> Cost:
    """Measure the loop through the engine client."""
    profile = load_profile("default")
    async with EngineClient(url, model="mock") as engine:

        async def read() -> None:
            await read_document(QUESTION, chunks, model=engine, profile=profile)

        await read()
        return await measured(read)


async def main() -> None:
    """Measure at each latency and print the ratios."""
    chunks, recorder = document(), _Recorder()
    await read_document(QUESTION, chunks, model=recorder, profile=load_profile("default"))
    table = Table("latency", "floor s", "ours s", "wall ratio", "ours CPU ms/call", "floor CPU ms/call")
    rows: list[dict[str, float]] = []
    for latency_s in LATENCIES_S:
        with mock_engine(latency_s=latency_s) as url:
            bare, loop = await floor(url, recorder.bodies), await ours(url, chunks)
        calls = len(recorder.bodies)
        row = {
            "latency_s": latency_s,
            "floor_s": round(bare.wall_s, 3),
            "ours_s": round(loop.wall_s, 3),
            "wall_ratio": round(loop.wall_s / bare.wall_s, 3),
            "cpu_ms_per_call": round(1000 * loop.cpu_s / calls, 2),
            "floor_cpu_ms_per_call": round(1000 * bare.cpu_s / calls, 2),
        }
        rows.append(row)
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)
    print(orjson.dumps({"benchmark": "long_read", "calls": len(recorder.bodies), "rows": rows}).decode())


if __name__ == "__main__":
    asyncio.run(main())
