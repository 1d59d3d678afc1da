"""Makes phases A and B of the curriculum: associative recall on bare text, where the signal is densest."""

from __future__ import annotations

import random

from memloop.wire.chat import ChatMessage
from trainer.tiny.example import Example
from trainer.tiny.prose import Prose, plant
from trainer.tiny.reading_tasks import CHARS_PER_TOKEN
from trainer.tiny.world import Fact, question_of, random_fact, random_pattern, sought


def recall_example(rng: random.Random, *, facts: int) -> Example:
    """Draw phase A: facts, each repeated later; the values of the repetitions are learned."""
    told = [random_fact(rng) for _ in range(facts)]
    first = {fact.key: fact for fact in told}
    again = list(first.values())
    rng.shuffle(again)
    head = " ".join(fact.sentence(random_pattern(rng)) for fact in first.values())
    tail = " ".join(fact.sentence() for fact in again)
    return Example("recall", "recall", (ChatMessage(role="raw", content=head),), f"\n{tail}")


def queries_example(rng: random.Random, prose: Prose, *, section_tokens: int) -> Example:
    """Draw phase B: prose with facts, then questions about facts inside it and about absent ones."""
    told = {fact.key: fact for fact in (random_fact(rng) for _ in range(max(1, section_tokens // 20)))}
    sentences = [fact.sentence(random_pattern(rng)) for fact in told.values()]
    chars = int(max(0, section_tokens - 10 * len(sentences)) * CHARS_PER_TOKEN)
    section = plant(rng, prose.slice(rng, chars), sentences)
    lines = [_asked(rng, list(told.values())) for _ in range(5)]
    return Example("queries", "queries", (ChatMessage(role="raw", content=section),), "\n" + "\n".join(lines))


def _asked(rng: random.Random, told: list[Fact]) -> str:
    near, other = rng.choice(told), random_fact(rng)
    asked = near if rng.random() < 0.5 else rng.choice((other, Fact(near.entity, other.attribute, other.value)))
    question = question_of(asked)
    return f"{question.text(rng.randrange(2))}\n{sought(question, told)[0].sentence()}"
