"""Counts rare failures among thousands of reading turns, which very long documents meet.

A turn takes one forward pass: the expected reply is known, and a turn is right if greedy decoding would give exactly
it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memloop.profiles import Profile, load_profile
from trainer.tiny.batches import Encoder
from trainer.tiny.documents import section_text
from trainer.tiny.example import Example, memory_text
from trainer.tiny.export import tokenizer_of, weights_of
from trainer.tiny.network import Shape, TinyQwen3
from trainer.tiny.prose import book
from trainer.tiny.reading_tasks import distractor, random_scene
from trainer.tiny.train import exact_turns
from trainer.tiny.world import UNKNOWN, Fact


@dataclass(frozen=True, slots=True)
class Stress:
    """A kind of turn: its section length (tokens), its number of others' facts, and whether it holds its own."""

    section_tokens: int
    others: int = 0
    told: bool = False


_UNKNOWN = 0.8
"""Share of memories that do not hold the fact yet; such a turn may store a wrong fact instead."""
_FRESH = 0.25
"""Share of these that are the empty memory of a first turn."""
KINDS: Mapping[str, Stress] = {
    "others' facts": Stress(110, others=6),
    "prose": Stress(230),
    "the fact": Stress(230, others=2, told=True),
}


def stress(checkpoint: Path, *, turns: int, seed: int) -> dict[str, tuple[int, int]]:
    """Return right and all turns of a checkpoint, by kind, over held-out prose."""
    tokenizer = tokenizer_of(checkpoint)
    network = TinyQwen3(Shape(tokenizer.get_vocab_size()))
    network.load_state_dict(weights_of(checkpoint))
    turn = partial(stress_turn, random.Random(seed), load_profile("tiny"))
    examples = [turn(name) for name in KINDS for _ in range(turns)]
    counted = exact_turns(network, Encoder(tokenizer).rows(examples))
    return {kind.removeprefix("read/"): counts for kind, counts in counted.items()}


def stress_turn(rng: random.Random, profile: Profile, name: str) -> Example:
    """Draw one turn of the kind, about a one-hop question."""
    kind = KINDS[name]
    scene = random_scene(rng, two_hop_share=0.0)
    (fact,) = scene.facts
    others = [distractor(rng, scene, 1.0, 1.0) for _ in range(kind.others)]
    before = Fact(fact.entity, fact.attribute, UNKNOWN) if kind.told or rng.random() < _UNKNOWN else fact
    after = fact if kind.told else before
    told = [*others, fact] if kind.told else others
    rng.shuffle(told)
    fresh = not before.known and rng.random() < _FRESH
    return Example(
        role="read",
        kind=name,
        messages=profile.render(
            "read",
            problem=scene.question.text(),
            memory=profile.empty_memory if fresh else memory_text([before]),
            section=section_text(rng, told, kind.section_tokens, book("held_out")),
        ),
        completion=memory_text([after]),
    )
