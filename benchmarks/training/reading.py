"""Reads the tiny world's documents with a checkpoint in this process: the served loop, many documents concurrently."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import orjson
import torch

from memloop.loops.memagent import read_document
from memloop.loops.steps import ChunkRead, ReadStep
from memloop.profiles import Profile, load_profile
from memloop.scoring.lenient import exact_match
from memloop.scoring.strict import strict_score
from trainer.rollout.cpu.chat import BatchedModel
from trainer.rollout.cpu.engine import Size
from trainer.rollout.overwrites import ERRORS, change_of
from trainer.tiny.documents import TRAINED_CHUNKS, Document, random_document

AT_ONCE = 32
PARTS = 2
IN_THE_ANSWER = "answered wrong"
_DISTRACTORS = (0.0, 0.5, 1.0)
"""Distractors per chunk, as in training: each document has one of them."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of one document: strict (in a box, as trained) and in any form.

    ``fault`` is what went wrong first in a document that was answered wrong: a change of the memory
    (:mod:`trainer.rollout.overwrites`) or the answer's turn.
    """

    strict: bool
    lenient: bool
    fault: str | None = None


def documents_of(*, times: int, count: int, seed: int) -> list[Document]:
    """Build held-out documents of ``times`` the training length, the fact in a random chunk."""
    rng, chunk_tokens = random.Random(f"{seed} {times}"), load_profile("tiny").budget.chunk_tokens
    return [
        random_document(
            rng,
            chunks=times * TRAINED_CHUNKS,
            chunk_tokens=chunk_tokens,
            hops=1,
            distractors_per_chunk=_DISTRACTORS[number % len(_DISTRACTORS)],
        )
        for number in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Reading:
    """A policy and a set of documents: a count, a seed, and one length in training lengths."""

    policy: str
    checkpoint: Path
    seed: int
    times: int
    count: int


@dataclass(frozen=True, slots=True)
class Part:
    """One of ``PARTS`` equal shares of a reading, so that all cores work on it."""

    reading: Reading
    number: int

    @property
    def documents(self) -> list[Document]:
        """Build the share's documents."""
        reading = self.reading
        return documents_of(times=reading.times, count=reading.count, seed=reading.seed)[self.number :: PARTS]

    @property
    def name(self) -> str:
        """Return a name that no other part of the run has."""
        reading = self.reading
        return f"{reading.policy}-{reading.seed}-{reading.times}x{reading.count}-{self.number}"


def parts_of(readings: Sequence[Reading]) -> list[Part]:
    """Return the parts of all readings, in order."""
    return [Part(reading, number) for reading in readings for number in range(PARTS)]


def read_or_recall(part: Part, folder: Path) -> list[Scores]:
    """Return the scores of the documents, from the folder if an earlier run left them there."""
    file = folder / f"read-{part.name}.json"
    if not file.is_file():
        scores = read_all(part.reading.checkpoint, part.documents)
        written = file.with_suffix(".part")
        written.write_bytes(orjson.dumps(scores))
        written.replace(file)
    return [Scores(**each) for each in orjson.loads(file.read_bytes())]


def read_all(checkpoint: Path, documents: Sequence[Document]) -> list[Scores]:
    """Read each document with the folder's checkpoint on one core; return the scores."""
    torch.set_num_threads(1)
    return asyncio.run(_read_all(checkpoint, documents))


async def _read_all(checkpoint: Path, documents: Sequence[Document]) -> list[Scores]:
    profile, gate = load_profile("tiny"), asyncio.Semaphore(AT_ONCE)
    size = Size(rows=AT_ONCE, length=profile.budget.window_tokens)
    model = BatchedModel.load(checkpoint, size, dtype=torch.bfloat16)

    async def scored(document: Document) -> Scores:
        async with gate:
            return await _read(model, profile, document)

    try:
        return list(await asyncio.gather(*map(scored, documents)))
    finally:
        model.close()


async def _read(model: BatchedModel, profile: Profile, document: Document) -> Scores:
    memories = list[str]()

    async def report(step: ReadStep) -> None:
        if isinstance(step, ChunkRead):
            memories.append(step.memory)

    result = await read_document(
        document.question, document.chunks, model=model.for_one_reader(), profile=profile, report=report
    )
    golds = (document.answer,)
    strict = bool(strict_score(result.raw_answer, golds))
    fault = None if strict else first_fault(document, [profile.empty_memory, *memories])
    return Scores(strict, bool(exact_match(result.answer, golds)), fault)


def first_fault(document: Document, memories: Sequence[str]) -> str:
    """Return what went wrong first, given the memory before the first chunk and after each one."""
    for chunk, (before, after) in zip(document.chunks, pairwise(memories), strict=True):
        change = change_of(before, after, text=chunk.text, question=document.question, golds=(document.answer,))
        if change == "missed" or change in ERRORS:
            return change
    return IN_THE_ANSWER
