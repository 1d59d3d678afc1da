"""Makes up an encyclopedia in HotpotQA's shape: any number of two-hop questions, reproducible by seed.

Each answer needs two of its question's ten paragraphs: a person's home, and a fact about that place. Names are made of
syllables and do not exist in the world; the filler is a public-domain novel. No licence applies.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import orjson
from pydantic import JsonValue

from memloop.wire.chat import Json
from trainer.tiny.prose import Prose, book

_HEADS = ("Bar", "Dun", "El", "Far", "Gor", "Hal", "Jar", "Kel", "Lin", "Mor", "Nor", "Os", "Pel", "Quar", "Ros", "Tam")
_MIDDLES = ("a", "e", "i", "o", "u", "an", "en", "in", "on", "ar", "er", "or", "el", "il", "ow", "ay")
_JOINTS = ("r", "l", "n", "s")
_PLACE_TAILS = ("by", "don", "ford", "hythe", "low", "mere", "ness", "stead", "ton", "wick", "worth", "field")
_NAME_TAILS = ("bert", "da", "dric", "fred", "gard", "la", "mund", "na", "rik", "ta", "vin", "wen")
ATTRIBUTES = ("tide mark", "lamp code", "post number", "bell weight", "well depth", "gate number", "mast height")
_PLACES_OF_A_QUESTION = 5
WHOLE_NAMES = len(_HEADS) * len(_JOINTS) * len(_MIDDLES) ** 2 * len(_PLACE_TAILS)


def encyclopedia(count: int, *, seed: int, paragraph_chars: int = 500) -> Iterator[Json]:
    """Yield ``count`` rows of HotpotQA's shape, ten paragraphs each, with unique titles.

    A paragraph has about ``paragraph_chars`` characters. Raises ValueError for more questions than there are names.
    """
    most = WHOLE_NAMES // _PLACES_OF_A_QUESTION
    if count > most:
        raise ValueError(f"there are names for {most} questions, not for {count}")
    order = list(range(WHOLE_NAMES))
    random.Random(f"{seed} names").shuffle(order)
    prose = book("train")
    for index in range(count):
        rng = random.Random(f"{seed} {index}")
        numbers = order[index * _PLACES_OF_A_QUESTION : (index + 1) * _PLACES_OF_A_QUESTION]
        yield _row(f"{seed}-{index}", numbers, rng, prose, paragraph_chars)


def write_encyclopedia(path: Path, count: int, *, seed: int) -> None:
    """Write the rows as JSONL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in encyclopedia(count, seed=seed))


def made_up_name(number: int) -> str:
    """Return a place's name, unique for each number below 196,608."""
    return _name(number, _PLACE_TAILS)


def made_up_person(number: int) -> str:
    """Return a person's name, unique for each number below 196,608."""
    return _name(number, _NAME_TAILS)


def _row(id_: str, numbers: list[int], rng: random.Random, prose: Prose, chars: int) -> Json:
    """Build one question over five people and their five places."""
    attribute = rng.choice(ATTRIBUTES)
    values = rng.sample(range(1000, 10_000), len(numbers))
    places = [made_up_name(number) for number in numbers]
    people = [made_up_person(number) for number in numbers]
    told = [(place, f"The {attribute} of {place} is {value}.") for place, value in zip(places, values, strict=True)]
    told += [(person, f"{person} lives in {place}.") for person, place in zip(people, places, strict=True)]
    facts: list[JsonValue] = [[people[0], 1], [places[0], 1]]
    rng.shuffle(told)
    return {
        "_id": id_,
        "question": f"What is the {attribute} of the place where {people[0]} lives?",
        "answer": str(values[0]),
        "type": "bridge",
        "supporting_facts": facts,
        "context": [[title, [filler(prose, rng, chars), f" {fact}"]] for title, fact in told],
    }


def _name(number: int, tails: tuple[str, ...]) -> str:
    """Return a unique name for each number below ``WHOLE_NAMES``; places and people have different endings."""
    number, tail = divmod(number, len(tails))
    number, head = divmod(number, len(_HEADS))
    number, joint = divmod(number, len(_JOINTS))
    last, middle = divmod(number, len(_MIDDLES))
    return _HEADS[head] + _MIDDLES[middle] + _JOINTS[joint] + _MIDDLES[last] + tails[tail]


def filler(prose: Prose, rng: random.Random, chars: int) -> str:
    """Return about ``chars`` characters of whole words of the prose on one line."""
    words = prose.slice(rng, chars).split()
    return " ".join(words[1:-1])
