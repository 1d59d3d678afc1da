"""The items of the speed runs: short facts of 500 users, and vectors for many of them from a few embeddings."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory_store.embedding.port import Encoder

Rows: TypeAlias = NDArray[np.float32]
"""(item, dimension), each of length 1."""

SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000}
USERS = 500
EMBEDDED = 2000
"""The number of embedded facts; all other vectors are slightly rotated copies, which does not affect speed."""
_TURN = 0.1
_NAMES = ("Anna", "Boris", "Chen", "Dalia", "Emeka", "Farah", "Goran", "Hana", "Ivo", "Jun", "Kofi", "Lena", "Malik")
_DEEDS = (
    "repaired the {thing} at the {place}",
    "sold a {thing} to a neighbour near the {place}",
    "prefers the {thing} from the {place}",
    "lost a {thing} on the way to the {place}",
    "is learning to build a {thing} in the {place}",
    "was given a {thing} after the party at the {place}",
    "wants to swap the {thing} for one from the {place}",
)
_THINGS = (
    "bicycle",
    "clarinet",
    "kettle",
    "tent",
    "radio",
    "lamp",
    "quilt",
    "camera",
    "violin",
    "rowing boat",
    "clock",
)
_PLACES = (
    "harbour",
    "old mill",
    "library",
    "north gate",
    "orchard",
    "lighthouse",
    "market hall",
    "ferry pier",
    "school",
)


def user_of(number: int, *, users: int = USERS) -> str:
    """Return the user of a fact."""
    return f"user-{number % users}"


def fact(number: int) -> str:
    """Return a fact; all facts differ."""
    name, deed = _NAMES[number % len(_NAMES)], _DEEDS[number // 3 % len(_DEEDS)]
    words = deed.format(thing=_THINGS[number // 7 % len(_THINGS)], place=_PLACES[number // 11 % len(_PLACES)])
    return f"{name} {words}, note {number}."


def question(number: int) -> str:
    """Return a question; all questions of a run differ."""
    thing, place = _THINGS[number * 5 % len(_THINGS)], _PLACES[number * 3 % len(_PLACES)]
    return f"Who had something to do with the {thing} at the {place}, question {number}?"


def vectors(encoder: Encoder, count: int) -> Rows:
    """Return the vectors of the first facts, in order."""
    known = np.asarray(encoder.encode([fact(number) for number in range(min(count, EMBEDDED))]), dtype=np.float32)
    rows = known[np.arange(count) % len(known)]
    turned = rows + _noise(rows.shape) * (np.arange(count) >= len(known))[:, None]
    return (turned / np.linalg.norm(turned, axis=1, keepdims=True)).astype(np.float32)


def _noise(shape: Sequence[int]) -> Rows:
    rows, columns = shape
    drawn = np.random.default_rng(seed=rows).standard_normal((rows, columns), dtype=np.float32)
    return (_TURN * drawn / np.sqrt(columns)).astype(np.float32)
