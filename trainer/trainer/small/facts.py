"""Facts as they are told and as they are kept: of the user, or of somebody the user knows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Final

from trainer.small.kinds import English, Kind
from trainer.small.persons import USER, asked_of, only_pronoun, sentence, somebody, told_of
from trainer.small.sample import dates

_LISTED: Final = frozenset(
    [
        "food",
        "allergen",
        "hobby",
        "sport",
        "language",
        "instrument",
        "plant",
        "animal",
        "medicine",
        "illness",
        "genre",
        "game",
        "tool",
        "course",
        "city",
    ]
)
_OF_HUNDRED_LISTS: Final = 18
_REDRAWS: Final = 7


@dataclass(frozen=True, slots=True)
class Someone:
    """A person around the user: ``rel`` is what they are to the user, ``pronoun`` she or he."""

    name: str
    rel: str
    pronoun: str

    @property
    def called(self) -> str:
        """How the user speaks of the person."""
        return f"my {self.rel} {self.name}"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of one kind. ``values`` fill its slots, dates excepted; ``of`` is None for the user's own."""

    kind: Kind
    values: dict[str, str]
    of: Someone | None = None

    def key(self, english: English) -> str:
        """Return the topic of its note.

        The store replaces a memory by one of the same topic. So a kind of which several may hold names its value.
        """
        topic = self.kind.key if self.kind.one else f"{self.kind.key} ({self.gold(english)})"
        return f"{self.of.name}'s {topic}" if self.of else topic

    def gold(self, english: English) -> str:
        """Return the part that an answer must hold."""
        return english.fill(self.kind.gold, self.values)

    def question(self, english: English, rng: Random) -> str:
        """Ask for it, as the user would."""
        way = rng.choice(self.kind.ways(self.kind.ask, held_out=english.words_held_out))
        return asked_of(way, rng.choice((self.of.name, self.of.called)) if self.of else "I") if self.of else way


@dataclass(frozen=True, slots=True)
class Told:
    """A fact in the user's words, and its note."""

    fact: Fact
    text: str
    note: str


def draw_person(english: English, rng: Random) -> Someone:
    """Draw somebody whom the user knows."""
    pronoun = rng.choice(("she", "he"))
    name = rng.choice(english.values["woman" if pronoun == "she" else "man"])
    return Someone(name, rng.choice(english.relatives[pronoun]), pronoun)


def draw_fact(english: English, rng: Random, *, of: Someone | None = None, kind: Kind | None = None) -> Fact:
    """Draw a fact with new values."""
    chosen = kind or rng.choice([held for held in english.kinds if not (of and held.own)])
    values = english.draw_values(chosen, rng)
    slot = chosen.gold[1:-1]
    if not chosen.one and slot in _LISTED and rng.randrange(100) < _OF_HUNDRED_LISTS:
        several = rng.sample(english.values[slot], rng.choice((2, 2, 3)))
        values[slot] = f"{', '.join(several[:-1])} and {several[-1]}"
    return Fact(chosen, values, of)


def another_value(fact: Fact, english: English, rng: Random) -> Fact:
    """Return a fact of the same kind and person whose gold differs; what else it names, such as a pet, stays.

    Raises ValueError for a kind that has one gold alone.
    """
    if "{" not in fact.kind.gold:
        raise ValueError(f"{fact.kind.name} is always {fact.kind.gold}")
    while True:
        drawn = english.draw_values(fact.kind, rng)
        changed = {slot: value for slot, value in drawn.items() if f"{{{slot}}}" in fact.kind.gold}
        other = replace(fact, values=fact.values | changed)
        if other.gold(english) != fact.gold(english):
            return other


def tell(
    fact: Fact, english: English, rng: Random, *, at: datetime, changed: bool = False, by_pronoun: bool = False
) -> Told:
    """Say the fact; with ``by_pronoun`` the sentence before has named the person.

    A way that would not name the person ("the kids are at home") is drawn again, a few times at most.
    """
    told = _tell(fact, english, rng, at=at, changed=changed, by_pronoun=by_pronoun)
    for _ in range(_REDRAWS):
        if fact.of is None or (fact.of.name in told.note and (by_pronoun or fact.of.name in told.text)):
            break
        told = _tell(fact, english, rng, at=at, changed=changed, by_pronoun=by_pronoun)
    return told


def _tell(fact: Fact, english: English, rng: Random, *, at: datetime, changed: bool, by_pronoun: bool) -> Told:
    said, kept = dates(rng, at)
    way = english.state(fact.kind, {**fact.values, "when": "{when}", "ago": "{ago}"}, rng, changed=changed)
    text, note = english.fill(way.text, said), english.fill(way.note or way.text, kept)
    noted = note if way.note else told_of(note, USER)
    if fact.of is None:
        return Told(fact, text, sentence(noted))
    person = somebody(fact.of.called, fact.of.pronoun)
    third = told_of(text, only_pronoun(fact.of.pronoun) if by_pronoun else person)
    kept_of = told_of(note, somebody(f"the user's {fact.of.rel} {fact.of.name}", fact.of.pronoun))
    if way.note:
        kept_of = re.sub(r"\bthe user\b", f"the user's {fact.of.rel} {fact.of.name}", noted, count=1)
    return Told(fact, third, sentence(kept_of))
