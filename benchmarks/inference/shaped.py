"""Measures the chunk loop on a published shape with random weights, on any machine with a GPU engine: ``--shape``."""

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.inference.chunk_loop import Load, Measured, run_load
from benchmarks.inference.shapes import engine_settings, write_shape
from benchmarks.tiny_engine import tiny_engine
from memloop.wire.chat import Json
from memloop_clients import EngineClient, Timeouts

CHUNKS = 2
_PATIENT = Timeouts(read_s=7200.0, total_s=7200.0)


@dataclass(frozen=True, slots=True)
class Prices:
    """The engine's number of GPUs, and the price of one."""

    gpus: int
    usd_per_hour: float


def planned(documents: Sequence[int]) -> list[Load]:
    """Return the loads: prompts alone, each number of documents, and the engine's maximum, all calls at once."""
    most = max(documents)
    prompts = Load(most, 1, reply_tokens=1, serial=False)
    return [prompts, *(Load(count, CHUNKS) for count in documents), Load(most, CHUNKS, serial=False)]


async def loads(url: str, shape: str, variant: str, documents: Sequence[int]) -> list[Measured]:
    """Measure each load after a warm-up, and print its line."""
    rows: list[Measured] = []
    async with EngineClient(url, model=shape, timeouts=_PATIENT) as engine:
        await run_load(engine, shape, variant, Load(1, 1, reply_tokens=16), seed=0)
        for seed, load in enumerate(planned(documents), 1):
            rows.append(await run_load(engine, shape, variant, load, seed=seed))
            print(f"{variant}: {load}: {rows[-1].seconds:.2f} s, {rows[-1].tokens_per_s:.0f} tokens/s", flush=True)
    return rows


def measure(
    shape: str, documents: Sequence[int], variants: Mapping[str, Mapping[str, str]], *, until: float
) -> list[Measured]:
    """Measure all loads under all variants, one engine after the other; none starts after ``until``."""
    rows: list[Measured] = []
    for variant, settings in variants.items():
        if time.monotonic() > until:
            print(f"no time left for: {variant}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            shaped = engine_settings(shape, write_shape(shape, Path(folder)), documents=max(documents))
            with tiny_engine(**shaped, **settings) as url:
                rows += asyncio.run(loads(url, shape, variant, documents))
    return rows


def figures(rows: Sequence[Measured], prices: Prices) -> list[Json]:
    """Return the figures of each serial load; its share is of the same engine's maximum.

    The rate of replies is of the seconds that the prompts, at their own rate, leave.
    """
    together = [row for row in rows if not row.load.serial]
    most = {row.variant: row.tokens_per_s for row in together if row.load.reply_tokens > 1}
    prompts = {row.variant: row.usage.input_tokens / row.seconds for row in together if row.load.reply_tokens == 1}
    return [
        {
            "variant": row.variant,
            "documents": row.load.documents,
            "seconds": round(row.seconds, 2),
            "tokens_per_s": round(row.tokens_per_s, 1),
            "prompt_tokens_per_s": _rounded(prompts.get(row.variant)),
            "reply_tokens_per_s": _rounded(_reply_rate(row, prompts.get(row.variant))),
            "s_per_1m_tokens": round(row.s_per_1m_document, 1),
            "gpu_s_per_1m_tokens": round(row.gpu_s_per_1m(prices.gpus), 1),
            "usd_per_1m_tokens": round(row.usd_per_1m(prices.gpus, usd_per_hour=prices.usd_per_hour), 4),
            "share_of_most": round(row.tokens_per_s / most[row.variant], 2),
        }
        for row in rows
        if row.load.serial
    ]


def _reply_rate(row: Measured, prompt_rate: float | None) -> float | None:
    if prompt_rate is None:
        return None
    left = row.seconds - row.usage.input_tokens / prompt_rate
    return row.usage.output_tokens / left if left > 0 else None


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)
