"""Reads the tiny world's documents with a checkpoint in this process: the served loop, many documents concurrently."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import orjson
import torch

from memloop.loops.memagent import read_document
from memloop.loops.memreread import reread_document
from memloop.loops.results import ReadResult
from memloop.loops.steps import ChunkRead, ReadStep
from memloop.ports import ChatModel
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
Loop = Literal["memagent", "memreread"]
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


def documents_of(*, times: int, count: int, seed: int, hops: int = 1) -> list[Document]:
    """Build held-out documents of ``times`` the training length, each fact in a random chunk."""
    rng, chunk_tokens = random.Random(f"{seed} {times}"), load_profile("tiny").budget.chunk_tokens
    return [
        random_document(
            rng,
            chunks=times * TRAINED_CHUNKS,
            chunk_tokens=chunk_tokens,
            hops=hops,
            distractors_per_chunk=_DISTRACTORS[number % len(_DISTRACTORS)],
        )
        for number in range(count)
    ]


Read = Callable[[ChatModel, Profile, Document], Awaitable[Scores]]


@dataclass(frozen=True, slots=True)
class Reading:
    """A policy and a set of documents: a count, a seed, and one length in training lengths; by which loop.

    ``memreread`` reads documents of two hops.
    """

    policy: str
    checkpoint: Path
    seed: int
    times: int
    count: int
    loop: Loop = "memagent"


@dataclass(frozen=True, slots=True)
class Part:
    """One of ``PARTS`` equal shares of a reading, so that all cores work on it."""

    reading: Reading
    number: int

    @property
    def documents(self) -> list[Document]:
        """Build the share's documents."""
        reading = self.reading
        hops = 2 if reading.loop == "memreread" else 1
        made = documents_of(times=reading.times, count=reading.count, seed=reading.seed, hops=hops)
        return made[self.number :: PARTS]

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
        scores = read_all(part.reading.checkpoint, part.documents, loop=part.reading.loop)
        written = file.with_suffix(".part")
        written.write_bytes(orjson.dumps(scores))
        written.replace(file)
    return [Scores(**each) for each in orjson.loads(file.read_bytes())]


def read_all(checkpoint: Path, documents: Sequence[Document], *, loop: Loop = "memagent") -> list[Scores]:
    """Read each document with the folder's checkpoint on one core; return the scores."""
    torch.set_num_threads(1)
    return asyncio.run(_read_all(checkpoint, documents, _reread if loop == "memreread" else _read))


async def _read_all(checkpoint: Path, documents: Sequence[Document], read: Read) -> list[Scores]:
    profile, gate = load_profile("tiny"), asyncio.Semaphore(AT_ONCE)
    size = Size(rows=AT_ONCE, length=profile.budget.window_tokens)
    model = BatchedModel.load(checkpoint, size, dtype=torch.bfloat16)

    async def scored(document: Document) -> Scores:
        async with gate:
            return await read(model.for_one_reader(), profile, document)

    try:
        return list(await asyncio.gather(*map(scored, documents)))
    finally:
        model.close()


async def _read(model: ChatModel, profile: Profile, document: Document) -> Scores:
    memories = list[str]()

    async def report(step: ReadStep) -> None:
        if isinstance(step, ChunkRead):
            memories.append(step.memory)

    result = await read_document(document.question, document.chunks, model=model, profile=profile, report=report)
    right = _scores(result, document)
    fault = None if right.strict else first_fault(document, [profile.empty_memory, *memories])
    return replace(right, fault=fault)


async def _reread(model: ChatModel, profile: Profile, document: Document) -> Scores:
    """Read by MemReread; several passes have no single first fault."""
    return _scores(await reread_document(document.question, document.chunks, model=model, profile=profile), document)


def _scores(result: ReadResult, document: Document) -> Scores:
    golds = (document.answer,)
    return Scores(bool(strict_score(result.raw_answer, golds)), bool(exact_match(result.answer, golds)))


def first_fault(document: Document, memories: Sequence[str]) -> str:
    """Return what went wrong first, given the memory before the first chunk and after each one."""
    for chunk, (before, after) in zip(document.chunks, pairwise(memories), strict=True):
        change = change_of(before, after, text=chunk.text, question=document.question, golds=(document.answer,))
        if change == "missed" or change in ERRORS:
            return change
    return IN_THE_ANSWER
