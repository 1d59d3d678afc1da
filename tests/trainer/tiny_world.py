"""What the tests of the tiny model share: the shipped tokenizer, and examples of every role."""

import random
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

from memloop.profiles import Profile, load_profile
from trainer.tiny.curriculum import FULL
from trainer.tiny.draw import draw
from trainer.tiny.example import Example
from trainer.tiny.prose import book

ROOT = Path(__file__).parents[2]
CHECKPOINT = ROOT / "services/inference/models/memloop-tiny"


@cache
def profile() -> Profile:
    return load_profile("tiny")


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(CHECKPOINT / "tokenizer.json"))


def examples(count: int, *, seed: int) -> list[Example]:
    rng = random.Random(seed)
    return [draw(rng, FULL, profile(), book("held_out")) for _ in range(count)]
