"""Makes chat turns: answer from recalled memories or from the conversation, or admit a missing fact."""

from __future__ import annotations

import random
from collections.abc import Callable

from memloop.profiles import Profile
from memloop.wire.chat import ChatMessage
from trainer.tiny.example import Example
from trainer.tiny.memory_tasks import memory_lines, told, user_fact
from trainer.tiny.small_talk import REPLIES, SMALL_TALK
from trainer.tiny.world import UNKNOWN, USER, Fact, person_fact

LOOK = "I look at the notes and at what was said."
ACKNOWLEDGED = "Thank you, I will remember that."


def chat_example(rng: random.Random, profile: Profile) -> Example:
    """Draw one chat turn, with or without recalled memories and earlier turns."""
    kind, messages, reply, thought = rng.choice(_SCENARIOS)(rng, profile)
    thinking = rng.random() < 0.5
    lead = f"<think>\n{thought}\n</think>\n\n" if thinking else ""
    return Example("chat", kind, messages, lead + reply, thinking=thinking)


Turn = tuple[str, tuple[ChatMessage, ...], str, str]


def recalled(rng: random.Random, profile: Profile, facts: list[Fact]) -> tuple[ChatMessage, ...]:
    """Return the gateway's message of recalled memories before the last turn; empty without facts."""
    return profile.render("recall", memories=memory_lines(rng, facts)) if facts else ()


def _owner(fact: Fact) -> str:
    return f"my {fact.attribute}" if fact.entity == USER else f"the {fact.attribute} of {fact.entity}"


def _ask(rng: random.Random, fact: Fact) -> ChatMessage:
    opening = rng.choice(("What is", "Tell me", "Do you remember"))
    return ChatMessage(role="user", content=f"{opening} {_owner(fact)}{'.' if opening == 'Tell me' else '?'}")


def _fact(rng: random.Random) -> Fact:
    return user_fact(rng) if rng.random() < 0.75 else person_fact(rng)


def _others(rng: random.Random, fact: Fact, most: int) -> list[Fact]:
    return [other for other in (_fact(rng) for _ in range(rng.randrange(most + 1))) if other.key != fact.key]


def _answer(fact: Fact) -> str:
    owner = f"Your {fact.attribute}" if fact.entity == USER else f"The {fact.attribute} of {fact.entity}"
    return f"{owner} is {fact.value}."


def _unknown(fact: Fact) -> str:
    return _answer(Fact(fact.entity, fact.attribute, UNKNOWN)).replace(".", " to me.")


def _known(rng: random.Random, profile: Profile) -> Turn:
    fact = _fact(rng)
    notes = [fact, *_others(rng, fact, 5)]
    rng.shuffle(notes)
    messages = (*_small_turns(rng), *recalled(rng, profile, notes), _ask(rng, fact))
    return "recalled", messages, _answer(fact), LOOK


def _not_known(rng: random.Random, profile: Profile) -> Turn:
    fact = _fact(rng)
    messages = (*_small_turns(rng), *recalled(rng, profile, _others(rng, fact, 5)), _ask(rng, fact))
    return "not_known", messages, _unknown(fact), LOOK


def _said_before(rng: random.Random, profile: Profile) -> Turn:
    fact = _fact(rng)
    messages = (
        ChatMessage(role="user", content=told(rng, fact)),
        ChatMessage(role="assistant", content=ACKNOWLEDGED),
        *recalled(rng, profile, _others(rng, fact, 3)),
        _ask(rng, fact),
    )
    return "said_before", messages, _answer(fact), LOOK


def _telling(rng: random.Random, profile: Profile) -> Turn:
    fact = _fact(rng)
    said = ChatMessage(role="user", content=told(rng, fact, news=rng.random() < 0.3))
    messages = (*_small_turns(rng), *recalled(rng, profile, _others(rng, fact, 3)), said)
    return "telling", messages, ACKNOWLEDGED, "The user tells me a fact."


def _small(rng: random.Random, profile: Profile) -> Turn:
    said = rng.choice(SMALL_TALK)
    messages = (
        *_small_turns(rng),
        *recalled(rng, profile, [_fact(rng) for _ in range(rng.randrange(3))]),
        ChatMessage(role="user", content=said),
    )
    return "small_talk", messages, REPLIES[said], "This is small talk."


def _small_turns(rng: random.Random) -> tuple[ChatMessage, ...]:
    if rng.random() < 0.7:
        return ()
    said = rng.choice(SMALL_TALK)
    return ChatMessage(role="user", content=said), ChatMessage(role="assistant", content=REPLIES[said])


_SCENARIOS: tuple[Callable[[random.Random, Profile], Turn], ...] = (
    _known,
    _known,
    _not_known,
    _said_before,
    _telling,
    _small,
)
