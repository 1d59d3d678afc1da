"""The tiny world as data for reinforcement learning: rows in verl's columns, for each of the three loops."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

from memloop.profiles import Profile
from memloop.wire.chat import Json
from trainer.data.rows import AgentName, reading_row, writing_row
from trainer.tiny.conversations import random_conversation
from trainer.tiny.documents import TRAINED_CHUNKS, random_document
from trainer.tiny.prose import Prose

_HARDER = (0.0, 0.5, 1.0)
"""Distractors per chunk, drawn for each document: a policy that is right on all of them learns nothing."""


def tiny_rows(
    rng: random.Random, agent: AgentName, profile: Profile, prose: Prose, *, chunks: int = TRAINED_CHUNKS
) -> Iterator[Json]:
    """Rows without end. MemReread's questions have two hops, whose facts stand in the wrong order for one pass."""
    for index in count():
        if agent == "memreader":
            yield _writing(rng, index, prose)
        else:
            yield _reading(rng, index, agent, profile, prose, chunks)


def _reading(rng: random.Random, index: int, agent: AgentName, profile: Profile, prose: Prose, chunks: int) -> Json:
    document = random_document(
        rng,
        chunks=chunks,
        chunk_tokens=profile.budget.chunk_tokens,
        hops=2 if agent == "memreread" else 1,
        distractors_per_chunk=rng.choice(_HARDER) if agent == "memagent" else 0.2,
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
