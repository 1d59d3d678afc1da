"""Draws one example of a mix."""

from __future__ import annotations

import random

from memloop.profiles import Profile
from trainer.tiny.chat_tasks import chat_example
from trainer.tiny.curriculum import Mix
from trainer.tiny.example import Example
from trainer.tiny.memory_tasks import memory_example
from trainer.tiny.prose import Prose
from trainer.tiny.raw_tasks import queries_example, recall_example
from trainer.tiny.reading_tasks import answer_example, integrate_example, judge_example, read_example
from trainer.tiny.relate_tasks import relate_example


def draw(rng: random.Random, mix: Mix, profile: Profile, prose: Prose) -> Example:
    """Draw one example: its role by the mix's shares, its content at random."""
    role = rng.choices(list(mix.shares), weights=list(mix.shares.values()))[0]
    match role:
        case "recall":
            return recall_example(rng, facts=rng.randrange(2, 8))
        case "queries":
            return queries_example(rng, prose, section_tokens=rng.randrange(20, 80))
        case "read":
            tokens = mix.section_tokens(rng)
            crowded = mix.crowded > 0 and rng.random() < mix.crowded
            return read_example(
                rng,
                profile,
                prose,
                section_tokens=tokens,
                near_misses=mix.near_misses,
                crowded=crowded,
                overlooked=mix.overlooked,
            )
        case _:
            return _turn(rng, role, profile, prose)


def _turn(rng: random.Random, role: str, profile: Profile, prose: Prose) -> Example:
    """Draw a turn of a loop that is not a section's."""
    match role:
        case "answer":
            return answer_example(rng, profile)
        case "judge":
            return judge_example(rng, profile)
        case "integrate":
            return integrate_example(rng, profile)
        case "memory":
            return memory_example(rng, profile, prose)
        case "relate":
            return relate_example(rng, profile, prose)
        case _:
            return chat_example(rng, profile)
