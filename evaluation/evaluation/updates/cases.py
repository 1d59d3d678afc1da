"""Cases of one new fact beside stored ones: a change, the same fact in other words, or another fact that is alike."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from evaluation.updates.facts import PEOPLE, Attribute
from memloop.wire.memory import MemoryDraft

Kind: TypeAlias = Literal["changed", "same", "new"]


@dataclass(frozen=True, slots=True)
class Case:
    """``target`` is the place of the stored fact that the new one is about; None when it is about none of them."""

    name: str
    kind: Kind
    stored: tuple[MemoryDraft, ...]
    new: MemoryDraft
    target: int | None


def cases(attributes: Sequence[Attribute], *, seed: int, people: Sequence[str] = PEOPLE) -> list[Case]:
    """Of each attribute and person three cases: changed, same, new. Each has a fact of every attribute beside it."""
    chance = random.Random(seed)
    return [
        case
        for attribute in attributes
        for who in people
        for case in _of(attribute, who, [other for other in attributes if other is not attribute], chance)
    ]


def _of(attribute: Attribute, who: str, more: Sequence[Attribute], chance: random.Random) -> Iterator[Case]:
    before, now = chance.sample(attribute.values, 2)
    old_key, new_key = chance.sample(attribute.keys, 2)
    old_words, new_words = chance.sample(attribute.wordings, 2)
    old = _fact(old_key, old_words, who, before)
    others = [_fact(old_key, old_words, f"{who}'s sister", now)]
    others += [_beside(each, who) for each in (attribute, *more)]
    others += [
        _fact(chance.choice(each.keys), chance.choice(each.wordings), who, chance.choice(each.values)) for each in more
    ]
    name = f"{attribute.keys[0].replace(' ', '-')}-{who}"
    changed, same = _fact(new_key, new_words, who, now), _fact(new_key, new_words, who, before)
    yield _shuffled(f"{name}-changed", "changed", old, others, changed, chance)
    yield _shuffled(f"{name}-same", "same", old, others, same, chance)
    yield Case(f"{name}-new", "new", tuple(others), changed, None)


def _beside(attribute: Attribute, who: str) -> MemoryDraft:
    value = attribute.beside.format(who=who)
    return MemoryDraft(key=value.rstrip("."), value=value)


def _fact(key: str, words: str, who: str, value: str) -> MemoryDraft:
    return MemoryDraft(key=f"{who}: {key.format(who=who)}", value=words.format(who=who, value=value))


def _shuffled(
    name: str, kind: Kind, target: MemoryDraft, others: Sequence[MemoryDraft], new: MemoryDraft, chance: random.Random
) -> Case:
    stored = [target, *others]
    chance.shuffle(stored)
    return Case(name, kind, tuple(stored), new, stored.index(target))
