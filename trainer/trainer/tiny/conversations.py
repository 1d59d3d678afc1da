"""Makes conversations for the memory writer's whole loop: turns, the store's content, and the right decision."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime

from memloop.ports import Recalled
from memloop.wire.memory import Source
from trainer.tiny.memory_tasks import Decision, scenario
from trainer.tiny.prose import Prose, book
from trainer.tiny.world import Fact


@dataclass(frozen=True, slots=True)
class Conversation:
    """`gold` is the decision in words: `add` and the stored sentences, `buffer`, or `ignore`."""

    kind: str
    turns: tuple[Source, ...]
    stored: tuple[Recalled, ...]
    gold: tuple[str, ...]


def random_conversation(rng: random.Random, prose: Prose | None = None) -> Conversation:
    """Draw any trained kind of conversation; without `prose`, over held-out prose."""
    told = scenario(rng, prose or book("held_out"))
    return Conversation(
        kind=told.kind,
        turns=tuple(_turn(line) for line in told.lines),
        stored=tuple(_recalled(number, fact) for number, fact in enumerate(told.stored)),
        gold=_gold(told.decision),
    )


def _turn(line: str) -> Source:
    role, _, content = line.removeprefix("[").partition("]: ")
    return Source(role=role, content=content)


def _recalled(number: int, fact: Fact) -> Recalled:
    return Recalled(id=str(number), text=fact.sentence(), valid_from=datetime(2026, 11, 1 + number, tzinfo=UTC))


def _gold(decision: Decision) -> tuple[str, ...]:
    action = decision.tool.removesuffix("_memory")
    return (action, *decision.stored)
