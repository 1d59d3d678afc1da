"""Measures the chunk loop on a published shape with random weights, on any machine with a GPU engine: ``--shape``."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.inference.chunk_loop import Load, Measured, run_load
from benchmarks.inference.shapes import engine_settings, write_shape
from benchmarks.tiny_engine import tiny_engine
from memloop.clients import EngineClient, Timeouts
from memloop.wire.chat import Json

CHUNKS = 2
_PATIENT = Timeouts(read_s=7200.0, total_s=7200.0)


@dataclass(frozen=True, slots=True)
class Prices:
    """The engine's number of GPUs, and the price of one."""

    gpus: int
    usd_per_hour: float


async def loads(url: str, shape: str, variant: str, documents: Sequence[int]) -> list[Measured]:
    """Measure each number of documents after a warm-up, then the engine's maximum: the largest load's calls at once."""
    planned = [*(Load(count, CHUNKS) for count in documents), Load(max(documents), CHUNKS, serial=False)]
    async with EngineClient(url, model=shape, timeouts=_PATIENT) as engine:
        await run_load(engine, shape, variant, Load(1, 1, reply_tokens=16), seed=0)
        return [await run_load(engine, shape, variant, load, seed=seed) for seed, load in enumerate(planned, 1)]


def measure(shape: str, documents: Sequence[int], variants: Mapping[str, Mapping[str, str]]) -> list[Measured]:
    """Measure all loads under all variants, one engine after the other."""
    rows: list[Measured] = []
    for variant, settings in variants.items():
        with tempfile.TemporaryDirectory() as folder:
            shaped = engine_settings(shape, write_shape(shape, Path(folder)), documents=max(documents))
            with tiny_engine(**shaped, **settings) as url:
                rows += asyncio.run(loads(url, shape, variant, documents))
    return rows


def figures(rows: Sequence[Measured], prices: Prices) -> list[Json]:
    """Return the figures of each serial load; its share is of the same engine's maximum."""
    most = {row.variant: row.tokens_per_s for row in rows if not row.load.serial}
    return [
        {
            "variant": row.variant,
            "documents": row.load.documents,
            "tokens_per_s": round(row.tokens_per_s, 1),
            "s_per_1m_tokens": round(row.s_per_1m_document, 1),
            "gpu_s_per_1m_tokens": round(row.gpu_s_per_1m(prices.gpus), 1),
            "usd_per_1m_tokens": round(row.usd_per_1m(prices.gpus, usd_per_hour=prices.usd_per_hour), 4),
            "share_of_most": round(row.tokens_per_s / most[row.variant], 2),
        }
        for row in rows
        if row.load.serial
    ]
