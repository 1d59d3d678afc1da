"""``questions``: compares eight questions in one pass with eight reads of one question."""

import random
import time
from collections.abc import Sequence

from benchmarks.long_read_strategies.measure import Row, chunks_for
from memloop.loops.memreread import read_questions
from memloop.loops.reader import Reader
from memloop.ports import ChatModel, Chunk, HeldChunks
from memloop.profiles import Profile
from memloop.wire.memory import Usage
from trainer.tiny.evaluate import Score
from trainer.tiny.prose import book, plant
from trainer.tiny.reading_tasks import CHARS_PER_TOKEN
from trainer.tiny.world import Fact, person_fact, question_of

QUESTIONS = 8


def document_with_many_facts(seed: int, *, chunks: int, chunk_tokens: int) -> tuple[list[Fact], HeldChunks]:
    """Build facts about different people, and a document that states each in a random chunk."""
    rng = random.Random(f"questions {seed}")
    facts: dict[str, Fact] = {}
    while len(facts) < QUESTIONS:
        fact = person_fact(rng)
        facts.setdefault(fact.entity, fact)
    told: list[list[Fact]] = [[] for _ in range(chunks)]
    for fact in facts.values():
        rng.choice(told).append(fact)
    texts = [
        plant(rng, book("held_out").slice(rng, int(chunk_tokens * CHARS_PER_TOKEN * 0.8)), [f.sentence() for f in own])
        for own in told
    ]
    return list(facts.values()), HeldChunks(_chunks(texts, chunk_tokens))


async def measured_questions(
    model: ChatModel, profile: Profile, *, tokens: int, count: int, together: bool, seed: int
) -> Row:
    """Measure whole documents: all questions in one read each, or one read per question in turn."""
    budget, right, usage, began = profile.budget.chunk_tokens, 0, Usage(), time.perf_counter()
    for number in range(count):
        facts, chunks = document_with_many_facts(
            seed + number, chunks=chunks_for(tokens, chunk_tokens=budget), chunk_tokens=budget
        )
        texts = [question_of(fact).text() for fact in facts]
        for group in [texts] if together else [[text] for text in texts]:
            results = await read_questions(
                group, chunks, strategy="memagent", max_rereads=0, reader=Reader(model, profile)
            )
            usage += sum((result.usage for result in results), Usage())
            answers = {fact_text: result.answer for fact_text, result in zip(group, results, strict=True)}
            right += sum(
                answers.get(text) == fact.value for text, fact in zip(texts, facts, strict=True) if text in answers
            )
    name = f"memagent, {QUESTIONS} questions {'in one read' if together else 'in turn'}"
    score, seconds = Score(name, right, count * QUESTIONS), (time.perf_counter() - began) / count
    return Row(name, tokens, score, usage.llm_calls / count, usage.total_tokens / count, seconds)


def _chunks(texts: Sequence[str], tokens: int) -> list[Chunk]:
    chunks, at = list[Chunk](), 0
    for index, text in enumerate(texts):
        chunks.append(Chunk(index, at, at + len(text), text, tokens))
        at += len(text)
    return chunks
