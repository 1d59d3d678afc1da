"""Makes documents of any length for a whole loop, over held-out prose or over given prose."""

from __future__ import annotations

import random
from dataclasses import dataclass

from memloop.ports import Chunk, HeldChunks
from trainer.tiny.prose import Prose, book, plant
from trainer.tiny.reading_tasks import CHARS_PER_TOKEN, Scene, distractor, random_scene
from trainer.tiny.world import Fact

TRAINED_CHUNKS = 4
"""One training length: 4 chunks."""
NEAR_MISSES = 0.2


@dataclass(frozen=True, slots=True)
class Document:
    """A question, its answer, and the chunks to read for it."""

    question: str
    answer: str
    chunks: HeldChunks


def random_document(
    rng: random.Random,
    *,
    chunks: int,
    chunk_tokens: int,
    hops: int,
    distractors_per_chunk: float,
    near_misses: float = NEAR_MISSES,
    prose: Prose | None = None,
) -> Document:
    """Make a document of `chunks` chunks of about `chunk_tokens` tokens; without `prose`, over held-out prose.

    The facts stand in chunks at random; of a two-hop question's facts the place's comes first, so one pass misses it.
    `near_misses` is the share of distracting facts that have the person or the attribute of a fact that is asked for.
    """
    scene = random_scene(rng, two_hop_share=float(hops == 2))
    told: list[list[Fact]] = [[] for _ in range(chunks)]
    for number, fact in zip(sorted(rng.sample(range(chunks), len(scene.facts))), reversed(scene.facts), strict=True):
        told[number].append(fact)
    for facts in told:
        facts.extend(_distractors(rng, scene, distractors_per_chunk, near_misses))
        rng.shuffle(facts)
    around = prose or book("held_out")
    texts = [section_text(rng, facts, chunk_tokens, around) for facts in told]
    return Document(scene.question.text(), scene.facts[-1].value, _chunks(texts, chunk_tokens))


def _distractors(rng: random.Random, scene: Scene, mean: float, near_misses: float) -> list[Fact]:
    whole = int(mean)
    return [distractor(rng, scene, near_misses) for _ in range(whole + (rng.random() < mean - whole))]


def section_text(rng: random.Random, facts: list[Fact], tokens: int, prose: Prose) -> str:
    """Make a section of about `tokens` tokens with the facts in it."""
    sentences = [fact.sentence() for fact in facts]
    chars = int((tokens - 10 * len(sentences)) * CHARS_PER_TOKEN * 0.9)
    return plant(rng, prose.slice(rng, chars), sentences)


def _chunks(texts: list[str], tokens: int) -> HeldChunks:
    chunks, at = list[Chunk](), 0
    for index, text in enumerate(texts):
        chunks.append(Chunk(index=index, start=at, end=at + len(text), text=text, tokens=tokens))
        at += len(text)
    return HeldChunks(chunks)
