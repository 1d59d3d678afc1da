"""Measures a read through API, Redis and worker beside an engine of fixed latency: overhead, CPU, concurrency."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.long_read.reads import Finished, client_of, finished, request, uploaded
from benchmarks.long_read.sizes import QUESTION, write_prose
from benchmarks.long_read.stack import Stack, running_stack
from benchmarks.mock_engine import mock_engine
from memloop_clients import GatewayClient

LATENCY_S: Final = 0.25
"""At least the time of a GPU for a chunk of 5,000 tokens, within an order of magnitude."""
AT_ONCE: Final = 32
_CHUNKS: Final = 60
_CHUNK_TOKENS: Final = 2500


def measured() -> dict[str, object]:
    """Measure one read, then ``AT_ONCE`` concurrent reads."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock_engine(latency_s=LATENCY_S) as engine,
        running_stack(engine, model="mock", profile="default", reads_at_once=AT_ONCE) as stack,
    ):
        path = Path(folder) / "document.txt"
        write_prose(path, _CHUNKS * _CHUNK_TOKENS)
        return asyncio.run(_reads(stack, path))


async def _reads(stack: Stack, path: Path) -> dict[str, object]:
    async with client_of(stack.url) as client:
        file_id = await uploaded(client, path)
        await _read(client, file_id)
        cpu = stack.cpu_s["worker"]
        done = await _read(client, file_id)
        cpu = stack.cpu_s["worker"] - cpu
        began = time.monotonic()
        many = await asyncio.gather(*(_read(client, file_id) for _ in range(AT_ONCE)))
        seconds = time.monotonic() - began
    engine_s = LATENCY_S * (done.chunks + 1)
    calls = sum(read.chunks + 1 for read in many)
    return {
        "latency_s": LATENCY_S,
        "chunks": done.chunks,
        "overhead_pct": round(100 * (done.seconds / engine_s - 1), 2),
        "cpu_ms_per_chunk": round(1000 * cpu / done.chunks, 2),
        "reads_at_once": AT_ONCE,
        "engine_kept_busy": round(calls * LATENCY_S / seconds, 1),
    }


async def _read(client: GatewayClient, file_id: str) -> Finished:
    asked = request(file_id, question=QUESTION, model="mock", chunk_tokens=_CHUNK_TOKENS)
    return await finished(client, await client.queue_read(asked))
