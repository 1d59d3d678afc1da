"""Makes turns that relate new memories to stored ones under other keys: same, updates, contradicts or new.

Half of the things are world codes of the training half, half are any words of the prose, so that comparing does not
depend on the thing's name.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Literal, TypeAlias

from memloop.loops.relating import Listed
from memloop.profiles import Profile
from memloop.wire.memory import MemoryDraft, MemoryItem
from trainer.tiny.example import Example
from trainer.tiny.memory_tasks import DAYS, user_fact
from trainer.tiny.paraphrases import (
    HELD_OUT_CODES,
    KEYS,
    SAID,
    TRAINED_ASIDES,
    TRAINED_CODES,
    WORDINGS,
    noun_of,
)
from trainer.tiny.prose import Prose
from trainer.tiny.world import PEOPLE, UNKNOWN, USER, VALUES, Fact

NONE = "none"
"""The value of a memory that states that somebody has no such thing."""
_OFTEN = 8
_WORD = re.compile(r"(?<= )[a-z]{4,10}(?= )")
Verb: TypeAlias = Literal["same", "updates", "contradicts", "new"]


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory under a key, and the fact that it states; an aside states none."""

    draft: MemoryDraft
    who: str
    noun: str
    value: str


@dataclass(frozen=True, slots=True)
class Case:
    """A new memory, the stored ones listed with it, and the place of the one that it is about."""

    new: Memory
    stored: tuple[Memory, ...]
    target: int | None = None


def relate_example(rng: random.Random, profile: Profile, prose: Prose) -> Example:
    """Draw one turn about one or two new memories."""
    cases = [_case(rng, _things(prose)) for _ in range(1 if rng.random() < 0.8 else 2)]
    near = [[_item(rng, memory.draft) for memory in case.stored] for case in cases]
    listed = Listed.of([case.new.draft for case in cases], near, most_chars=profile.budget.chunk_tokens * 2)
    shown = [(place, cases[place - 1], min(numbers)) for place, numbers in listed.below.items()]
    thought = "\n".join(_thought(place, case, first) for place, case, first in shown)
    reply = "\n".join(_line(place, case, first) for place, case, first in shown)
    return Example(
        role="relate",
        kind=_verb(cases[0]),
        messages=profile.render("relate", memories=listed.text),
        completion=f"<think>\n{thought}\n</think>\n\n{reply}",
        thinking=True,
    )


def _thought(place: int, case: Case, first: int) -> str:
    """Restate the new fact and the stored one as the world does, so that comparing needs no look at the prompt."""
    thing = f"The {case.new.noun} code of {case.new.who} is"
    held = UNKNOWN if case.target is None else f"{case.stored[case.target].value}, in {first + case.target}"
    return f"{place}: {thing} {case.new.value}. Stored: {thing} {held}."


def _line(place: int, case: Case, first: int) -> str:
    return f"{place}: {_verb(case)}" + ("" if case.target is None else f" {first + case.target}")


def _verb(case: Case) -> Verb:
    if case.target is None:
        return "new"
    new, held = case.new.value, case.stored[case.target].value
    if new == held:
        return "same"
    return "contradicts" if NONE in (new, held) else "updates"


@cache
def _things(prose: Prose) -> tuple[str, ...]:
    """Return the common words of the prose without those of the held-out codes."""
    counted = Counter(_WORD.findall(prose.text))
    held_out = {noun_of(code) for code in HELD_OUT_CODES}
    return tuple(word for word, count in sorted(counted.items()) if count >= _OFTEN and word not in held_out)


def _case(rng: random.Random, things: tuple[str, ...]) -> Case:
    if rng.random() < 0.25:
        return _as_the_writer_stores(rng)
    who, attribute = _who(rng), _attribute(rng, things)
    new = _memory(rng, who, attribute, _value(rng))
    stored = [_other(rng, new, attribute, things) for _ in range(rng.choice((1, 2, 3, 3)))]
    if rng.random() < 0.4:
        return Case(new, tuple(stored))
    value = new.value if rng.random() < 0.45 else _value(rng)
    drawn = iter(lambda: _memory(rng, who, attribute, value), None)
    at = rng.randrange(len(stored))
    stored[at] = next(memory for memory in drawn if memory.draft.key != new.draft.key)
    return Case(new, tuple(stored), at)


def _as_the_writer_stores(rng: random.Random) -> Case:
    """Draw facts under the memory writer's own keys: what another code of the same user looks like."""
    told = (user_fact(rng) for _ in range(20))
    facts = {fact.key: fact for fact in told if fact.attribute not in HELD_OUT_CODES}
    new, *stored = [_plain(fact) for fact in facts.values()][: rng.randrange(2, 5)]
    return Case(new, tuple(stored))


def _plain(fact: Fact) -> Memory:
    draft = MemoryDraft(key=f"{fact.attribute} of {fact.entity}", value=fact.sentence())
    return Memory(draft, fact.entity, noun_of(fact.attribute), fact.value)


def _memory(rng: random.Random, who: str, attribute: str, value: str) -> Memory:
    if value != NONE and rng.random() < 0.2:
        return _plain(Fact(who, attribute, value))
    noun = noun_of(attribute)
    said = (*WORDINGS, *SAID) if who == USER else WORDINGS
    words = f"{{who}} has no {noun}." if value == NONE else rng.choice(said)
    return Memory(_draft(rng, words, who, attribute, value), who, noun, value)


def _draft(rng: random.Random, words: str, who: str, attribute: str, value: str) -> MemoryDraft:
    filled = {"who": who, "attribute": attribute, "noun": noun_of(attribute), "value": value}
    text = words.format(**filled)
    key = f"{who}: {rng.choice(KEYS).format(**filled)}" if words not in SAID and rng.random() < 0.85 else text
    return MemoryDraft(key=key, value=text)


def _other(rng: random.Random, new: Memory, attribute: str, things: tuple[str, ...]) -> Memory:
    """Draw a memory that resembles the new one and is about another person, another thing or no code."""
    kind = rng.choice(("sister", "person", "thing", "thing", "aside"))
    value = new.value if rng.random() < 0.4 else _value(rng)
    if kind == "sister":
        return _memory(rng, f"{new.who}'s sister", attribute, value)
    if kind == "person":
        return _memory(rng, next(who for who in _drawn(rng) if who != new.who), attribute, value)
    other = next(each for each in iter(lambda: _attribute(rng, things), "") if noun_of(each) != new.noun)
    if kind == "thing":
        return _memory(rng, new.who, other, value)
    text = _aside(rng, things).format(who=new.who, noun=noun_of(rng.choice((attribute, other))))
    return Memory(MemoryDraft(key=text.rstrip("."), value=text), new.who, "", "")


def _aside(rng: random.Random, things: tuple[str, ...]) -> str:
    """Draw a sentence that states no code; half of them in any words, for few sentences would be learned by heart."""
    if rng.random() < 0.5:
        return rng.choice(TRAINED_ASIDES)
    words = rng.choices(things, k=rng.choice((2, 3, 4)))
    words.insert(rng.randrange(1, len(words) + 1), "the {noun}")
    return f"{{who}} {' '.join(words)}."


def _drawn(rng: random.Random) -> Iterator[str]:
    while True:
        yield _who(rng)


def _who(rng: random.Random) -> str:
    return USER if rng.random() < 0.3 else rng.choice(PEOPLE)


def _attribute(rng: random.Random, things: tuple[str, ...]) -> str:
    if rng.random() < 0.5:
        return rng.choice(TRAINED_CODES)
    return f"{rng.choice(things)} {rng.choice(('code', 'number'))}"


def _value(rng: random.Random) -> str:
    return NONE if rng.random() < 0.1 else rng.choice(VALUES)


def _item(rng: random.Random, draft: MemoryDraft) -> MemoryItem:
    day = datetime.fromisoformat(rng.choice(DAYS)).replace(tzinfo=UTC)
    return MemoryItem(
        id="", memory=draft.value, key=draft.key, memory_type=draft.memory_type, user_id=USER, valid_from=day,
        created_at=day, updated_at=day, hash="",
    )  # fmt: skip
