"""The synthetic world: people and places with three-digit codes, in plain English sentences.

Every name, attribute and value is one token of the tiny tokenizer, so copying a fact out of prose is one step.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# fmt: off
PEOPLE = (
    "Marta", "Anna", "Bruno", "Carla", "Dario", "Elena", "Fabio", "Greta", "Hugo", "Irina", "Jonas", "Katia",
    "Lukas", "Mila", "Nadia", "Oscar", "Petra", "Quentin", "Rosa", "Sven", "Tanja", "Ulrike", "Viktor", "Wanda",
    "Xenia", "Yusuf", "Zoe", "Aisha", "Boris", "Chiara", "Dmitri", "Edith", "Freya", "Gustav", "Hanna", "Igor",
    "Jasmin", "Karim", "Leila", "Marco", "Nora", "Olga", "Pablo", "Ravi", "Selma", "Timo", "Ursula", "Vera",
    "Wilma", "Yara", "Zelda", "Amir", "Bianca", "Cesar", "Dalia", "Emil", "Fatima", "Gloria", "Heidi", "Ivan",
    "Julia", "Kofi", "Lena", "Mateo", "Nina", "Omar", "Priya", "Ruben", "Sofia", "Tariq", "Uma", "Vincent",
    "Wendy", "Ximena", "Yvonne", "Zara", "Alma", "Bjorn", "Clara", "Diego", "Esther", "Felix", "Gita", "Hassan",
    "Ines", "Jorge", "Keiko", "Lars", "Mina",
)
PLACES = (
    "Oslo", "Madrid", "Vienna", "Prague", "Dublin", "Athens", "Berlin", "Zurich", "Geneva", "Milan", "Turin",
    "Porto", "Seville", "Munich", "Hamburg", "Krakow", "Warsaw", "Riga", "Tallinn", "Helsinki", "Bergen", "Lyon",
    "Ghent", "Bruges", "Utrecht", "Basel", "Graz", "Verona", "Nairobi", "Lagos", "Quito", "Bogota", "Osaka",
    "Kyoto", "Hanoi", "Delhi", "Toronto", "Denver", "Boston", "Dallas",
)
PERSON_CODES = (
    "locker code", "badge number", "vault code", "alarm code", "garage code", "laptop code", "parking number",
    "router code", "elevator code", "scooter number", "studio code", "printer number",
)
PLACE_CODES = (
    "airport code", "metro code", "stadium code", "museum code", "tram number", "hotel code",
)
# fmt: on
USER = "the user"
HOME = "home town"
VALUES = tuple(f"{number:03d}" for number in range(1000))
UNKNOWN = "unknown"

Pattern = Literal["canonical", "past"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One relation of the world: ``attribute`` of ``entity`` is ``value``."""

    entity: str
    attribute: str
    value: str

    @property
    def known(self) -> bool:
        """Return whether the fact has a value; memories also hold open facts."""
        return self.value != UNKNOWN

    @property
    def key(self) -> tuple[str, str]:
        """Return the key that identifies the fact whatever its value."""
        return self.entity, self.attribute

    def sentence(self, pattern: Pattern = "canonical") -> str:
        """Return the fact in English; memories always use the canonical pattern."""
        if pattern == "canonical":
            return f"The {self.attribute} of {self.entity} is {self.value}."
        return f"The {self.attribute} for {self.entity} was {self.value}."


@dataclass(frozen=True, slots=True)
class Question:
    """A question about ``attribute`` of ``entity``, or of the home of ``entity`` when ``hops`` is two."""

    entity: str
    attribute: str
    hops: Literal[1, 2] = 1

    @property
    def subject(self) -> str:
        """Return the subject as it stands in a question or a query."""
        owner = self.entity if self.hops == 1 else f"the {HOME} of {self.entity}"
        return f"the {self.attribute} of {owner}"

    def text(self, phrasing: int = 0) -> str:
        """Return the question in one of two phrasings."""
        return f"What is {self.subject}?" if phrasing == 0 else f"Tell me {self.subject}."


def random_value(rng: random.Random, attribute: str) -> str:
    """Draw a value that fits the attribute: a place for a home, else three digits."""
    return rng.choice(PLACES) if attribute == HOME else rng.choice(VALUES)


def random_fact(rng: random.Random) -> Fact:
    """Draw any fact about a person or a place."""
    kind = rng.random()
    if kind < 0.2:
        return person_fact(rng, attribute=HOME)
    return person_fact(rng) if kind < 0.65 else place_fact(rng)


def person_fact(rng: random.Random, *, entity: str | None = None, attribute: str | None = None) -> Fact:
    """Draw a fact about a person, as far as it is not given."""
    chosen = attribute or rng.choice(PERSON_CODES)
    return Fact(entity or rng.choice(PEOPLE), chosen, random_value(rng, chosen))


def place_fact(rng: random.Random, *, entity: str | None = None, attribute: str | None = None) -> Fact:
    """Draw a fact about a place, as far as it is not given."""
    chosen = attribute or rng.choice(PLACE_CODES)
    return Fact(entity or rng.choice(PLACES), chosen, random_value(rng, chosen))


def random_pattern(rng: random.Random) -> Pattern:
    """Draw a pattern: canonical three times out of four."""
    return "canonical" if rng.random() < 0.75 else "past"


def question_of(fact: Fact) -> Question:
    """Return the one-hop question that the fact answers."""
    return Question(fact.entity, fact.attribute)


def sought(question: Question, told: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return a perfect memory's facts for a question after these facts: found values, and the next open one.

    A two-hop question opens its second fact only when the home is known. The first value wins.
    """
    values: dict[tuple[str, str], str] = {}
    for fact in told:
        values.setdefault(fact.key, fact.value)
    attribute = question.attribute if question.hops == 1 else HOME
    first = Fact(question.entity, attribute, values.get((question.entity, attribute), UNKNOWN))
    if question.hops == 1 or not first.known:
        return (first,)
    second = values.get((first.value, question.attribute), UNKNOWN)
    return first, Fact(first.value, question.attribute, second)
