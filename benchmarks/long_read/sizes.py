"""Measures peak memory of API and worker by document size, on an engine without a model, and chunking speed."""

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.long_read.reads import client_of, finished, request, uploaded
from benchmarks.long_read.stack import TOKENIZER, Stack, running_stack
from benchmarks.mock_engine import mock_engine
from gateway.files.texts import ChunkIndex
from memloop.chunking import TokenizerSplitter
from trainer.tiny.prose import book

SIZES: Final = (10_000, 100_000, 1_000_000, 3_500_000, 10_000_000)
CHUNK_TOKENS: Final = 5000
QUESTION: Final = "Who keeps the key of the north gate?"
_PART_CHARS: Final = 20_000


def write_prose(path: Path, tokens: int) -> None:
    """Write a text of at least ``tokens`` tokens of the tiny tokenizer."""
    rng, splitter = random.Random(1), TokenizerSplitter(TOKENIZER.read_bytes())
    part = book("held_out").slice(rng, _PART_CHARS)
    with path.open("w") as file:
        for _ in range(1 + tokens // splitter.count(part)):
            file.write(part)


def cut_tokens_per_s(path: Path) -> int:
    """Measure chunking of a stored text in one thread, in tokens per second."""
    splitter, raw, began = TokenizerSplitter(TOKENIZER.read_bytes()), path.read_bytes(), time.perf_counter()
    blocks = (raw[start : start + (1 << 20)] for start in range(0, len(raw), 1 << 20))
    index = ChunkIndex.of(blocks, splitter, chunk_tokens=CHUNK_TOKENS)
    return round(sum(index.tokens) / (time.perf_counter() - began))


def peaks(sizes: Sequence[int]) -> list[dict[str, object]]:
    """Return one row per size, each from a fresh stack."""
    return [_peak(size) for size in sizes]


def _peak(tokens: int) -> dict[str, object]:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock_engine(latency_s=0.0) as engine,
        running_stack(engine, model="mock", profile="default") as stack,
    ):
        path = Path(folder) / "document.txt"
        write_prose(path, tokens)
        row = asyncio.run(_read(stack, path))
        return {"tokens": tokens, "megabytes": round(path.stat().st_size / 1e6, 1), **row}


async def _read(stack: Stack, path: Path) -> dict[str, object]:
    async with client_of(stack.url) as client:
        file_id = await uploaded(client, path)
        asked = request(file_id, question=QUESTION, model="mock", chunk_tokens=CHUNK_TOKENS)
        done = await finished(client, await client.queue_read(asked))
    peak = stack.peak_mb
    return {
        "chunks": done.chunks,
        **{f"{name}_peak_mb": round(value, 1) for name, value in peak.items()},
        "peak_mb": round(sum(peak.values()), 1),
    }
