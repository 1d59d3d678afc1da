"""Reads documents of the tiny model's world with one strategy and scores the answers."""

import asyncio
import random
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from math import ceil
from pathlib import Path

from memloop.chunking import TokenizerSplitter
from memloop.loops.memreread import read_questions
from memloop.loops.reader import Reader
from memloop.loops.results import ReadResult
from memloop.ports import ChatModel
from memloop.profiles import Profile
from memloop.wire.errors import MemloopError
from memloop.wire.long_read import Strategy
from memloop.wire.memory import Usage
from memloop.wire.reading import Gated, MhmLru, Parallel, ReadingOptions, Retrieved
from trainer.tiny.documents import Document, random_document
from trainer.tiny.evaluate import Score

MAX_REREADS = 2
DISTRACTORS_PER_CHUNK = 0.2
"""One fact about another person or thing in five chunks."""
_TOKENIZER = Path("services/inference/models/memloop-tiny/tokenizer.json")


@dataclass(frozen=True, slots=True)
class Way:
    """A reading strategy. ``hops`` 2 needs a fact that leads to the next, in the wrong order."""

    name: str
    hops: int = 1
    strategy: Strategy = "memagent"
    options: ReadingOptions = field(default_factory=ReadingOptions)


PLAIN = Way("memagent")
PARALLEL = Way("memagent, parallel 8", options=ReadingOptions(parallel=Parallel(segments=8)))
WAYS = (
    PLAIN,
    PARALLEL,
    Way("memagent, gated exit", options=ReadingOptions(gated=Gated())),
    Way("memagent, mhm_lru 2", options=ReadingOptions(mhm_lru=MhmLru(heads=2))),
    Way("memagent, mhm_lru 4", options=ReadingOptions(mhm_lru=MhmLru(heads=4))),
    Way("memagent, 2 hops", hops=2),
    Way("memreread, 2 hops", hops=2, strategy="memreread"),
    Way("memreread, 2 hops, retrieved 8", 2, "memreread", ReadingOptions(retrieved=Retrieved(chunks=8))),
    Way("memreread, 2 hops, parallel 8", 2, "memreread", ReadingOptions(parallel=Parallel(segments=8))),
    Way("memreread, 2 hops, gated exit", 2, "memreread", ReadingOptions(gated=Gated())),
)


@dataclass(frozen=True, slots=True)
class Row:
    """The score of a strategy at a size. ``seconds`` is the wall time of one read alone on the engine."""

    way: str
    tokens: int
    score: Score
    calls: float
    call_tokens: float
    seconds: float | None = None

    def __add__(self, other: "Row") -> "Row":
        """Merge two rows' documents. Their seconds are dropped: they belong to one document."""
        mine, others = self.score, other.score
        score = Score(self.way, mine.right + others.right, mine.total + others.total, mine.failed + others.failed)
        share = others.total / max(1, score.total)
        return Row(
            self.way,
            self.tokens,
            score,
            self.calls + share * (other.calls - self.calls),
            self.call_tokens + share * (other.call_tokens - self.call_tokens),
        )

    def cells(self) -> dict[str, object]:
        """Return the row as plain values."""
        low, high = self.score.interval()
        return {
            "way": self.way,
            "document_tokens": self.tokens,
            "reads": self.score.total,
            "exact_match": round(self.score.accuracy, 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "failed": self.score.failed,
            "calls": round(self.calls, 1),
            "tokens": round(self.call_tokens),
            "seconds": None if self.seconds is None else round(self.seconds, 2),
        }


def documents_of(
    profile: Profile, *, tokens: int, hops: int, count: int, seed: int, distractors_per_chunk: float
) -> list[Document]:
    """Build documents of ``tokens`` tokens of the tiny tokenizer, each with its facts at places of its own."""
    asked = partial(document_of, profile, tokens=tokens, hops=hops, distractors_per_chunk=distractors_per_chunk)
    return [asked(seed=seed, number=number) for number in range(count)]


def document_of(
    profile: Profile, *, tokens: int, hops: int, distractors_per_chunk: float, seed: int, number: int
) -> Document:
    """Build one document."""
    chunk_tokens = profile.budget.chunk_tokens
    return random_document(
        random.Random(f"{seed} {tokens} {hops} {number}"),
        chunks=chunks_for(tokens, chunk_tokens=chunk_tokens),
        chunk_tokens=chunk_tokens,
        hops=hops,
        distractors_per_chunk=distractors_per_chunk,
    )


@cache
def chunks_for(tokens: int, *, chunk_tokens: int) -> int:
    """Return how many of the world's chunks, slightly shorter than ``chunk_tokens``, make ``tokens`` tokens."""
    probe = random_document(random.Random(0), chunks=32, chunk_tokens=chunk_tokens, hops=1, distractors_per_chunk=0.0)
    splitter = TokenizerSplitter(_TOKENIZER.read_bytes())
    per_chunk = sum(splitter.count(chunk.text) for chunk in probe.chunks) / len(probe.chunks)
    return max(2, ceil(tokens / per_chunk))


async def read_one(model: ChatModel, profile: Profile, way: Way, document: Document) -> ReadResult:
    """Read the document with this strategy."""
    reader = Reader(model, profile, options=way.options)
    (result,) = await read_questions(
        [document.question], document.chunks, strategy=way.strategy, max_rereads=MAX_REREADS, reader=reader
    )
    return result


async def measured(
    model: ChatModel, profile: Profile, way: Way, documents: Sequence[Document], *, tokens: int, alone: bool
) -> Row:
    """Read all documents concurrently for quality; ``alone`` reads the first once more for its wall time."""
    results = await asyncio.gather(*(_or_none(read_one(model, profile, way, each)) for each in documents))
    right = sum(
        result is not None and result.answer == document.answer
        for result, document in zip(results, documents, strict=True)
    )
    ended = [result for result in results if result is not None]
    usage = sum((result.usage for result in ended), Usage())
    score = Score(way.name, right, len(documents), len(documents) - len(ended))
    seconds = await seconds_of(model, profile, way, documents[0]) if alone else None
    many = max(1, len(ended))
    return Row(way.name, tokens, score, usage.llm_calls / many, usage.total_tokens / many, seconds)


async def seconds_of(model: ChatModel, profile: Profile, way: Way, document: Document) -> float:
    """Measure the wall time of one read."""
    began = time.perf_counter()
    await read_one(model, profile, way, document)
    return time.perf_counter() - began


async def _or_none(work: Awaitable[ReadResult]) -> ReadResult | None:
    """Return None for a failed read, which counts as a wrong answer."""
    try:
        return await work
    except MemloopError:
        return None
