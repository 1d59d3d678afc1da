"""Measures the speed-up of segments on an engine with spare capacity: a mock of fixed latency without a limit."""

import time
from dataclasses import dataclass, replace
from itertools import count

from benchmarks.mock_engine import mock_engine
from memloop.loops.memagent import read_document
from memloop.ports import ChatModel, Chunk, Completion, HeldChunks, Prompt
from memloop.profiles import load_profile
from memloop.wire.reading import Parallel, ReadingOptions
from memloop_clients.engine import EngineClient

CHUNKS = 160
LATENCY_S = 0.05


@dataclass(frozen=True, slots=True)
class _Different:
    """A ChatModel whose replies differ, so that the memories of segments must be merged."""

    model: ChatModel
    numbers: "count[int]"

    async def complete(self, prompt: Prompt) -> Completion:
        completion = await self.model.complete(prompt)
        return replace(completion, content=f"{completion.content} {next(self.numbers)}")


async def speedup(segments: int) -> dict[str, float]:
    """Return the wall seconds of the plain loop and of the segments, and their ratio."""
    text = "It was a quiet morning in the harbour, and nobody spoke. " * 20
    chunks = HeldChunks(Chunk(n, n * len(text), (n + 1) * len(text), text, 5000) for n in range(CHUNKS))
    seconds: list[float] = []
    with mock_engine(latency_s=LATENCY_S) as url:
        async with EngineClient(url, model="mock") as engine:
            for options in (ReadingOptions(), ReadingOptions(parallel=Parallel(segments=segments))):
                began = time.perf_counter()
                model = _Different(engine, count())
                await read_document("Who?", chunks, model=model, profile=load_profile("default"), options=options)
                seconds.append(time.perf_counter() - began)
    plain_s, parallel_s = seconds
    return {"plain_s": round(plain_s, 3), "parallel_s": round(parallel_s, 3), "speedup": round(plain_s / parallel_s, 2)}
