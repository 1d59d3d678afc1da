"""Makes RL rows of the tiny world in verl's columns, for each of the three loops."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from memloop.profiles import Profile
from memloop.wire.chat import Json
from trainer.data.rows import AgentName, reading_row, writing_row
from trainer.tiny.conversations import random_conversation
from trainer.tiny.documents import NEAR_MISSES, TRAINED_CHUNKS, random_document
from trainer.tiny.prose import Prose

_FEW = 0.2
_HARDER = (0.0, 0.5, 1.0)
"""Distractors per chunk, drawn for each document: a policy that is right on all documents learns nothing."""


@dataclass(frozen=True, slots=True)
class Hardness:
    """The difficulty of documents: chunks, distractors per chunk, and the share of near misses among them.

    By default a document has a few distractors, as suits its loop.
    """

    chunks: int = TRAINED_CHUNKS
    distractors: float | None = None
    near_misses: float = NEAR_MISSES


def tiny_rows(
    rng: random.Random, agent: AgentName, profile: Profile, prose: Prose, hardness: Hardness = Hardness()
) -> Iterator[Json]:
    """Yield endless rows. MemReread's questions have two hops, whose facts stand in the wrong order for one pass."""
    for index in count():
        if agent == "memreader":
            yield _writing(rng, index, prose)
        else:
            yield _reading(rng, index, agent, profile, prose, hardness)


def _reading(
    rng: random.Random, index: int, agent: AgentName, profile: Profile, prose: Prose, hardness: Hardness
) -> Json:
    distractors = hardness.distractors
    if distractors is None:
        distractors = rng.choice(_HARDER) if agent == "memagent" else _FEW
    document = random_document(
        rng,
        chunks=hardness.chunks,
        chunk_tokens=profile.budget.chunk_tokens,
        hops=2 if agent == "memreread" else 1,
        distractors_per_chunk=distractors,
        near_misses=hardness.near_misses,
        prose=prose,
    )
    return reading_row(
        data_source=f"memloop/tiny/{agent}",
        index=index,
        id_=f"{agent}-{index}",
        question=document.question,
        answers=(document.answer,),
        context="".join(chunk.text for chunk in document.chunks),
        agent=agent,
    )


def _writing(rng: random.Random, index: int, prose: Prose) -> Json:
    told = random_conversation(rng, prose)
    return writing_row(
        data_source="memloop/tiny/memreader",
        index=index,
        id_=f"memreader-{told.kind}-{index}",
        turns=told.turns,
        stored=told.stored,
        gold=told.gold,
    )
