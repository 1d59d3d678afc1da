"""Makes turns of the memory writer: one conversation, one of the four tools, with and without thinking."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from memloop.profiles import Profile
from memloop.wire.chat import ChatMessage, FunctionCall, ToolCall
from trainer.tiny.chat_format import tool_call_text
from trainer.tiny.example import Example
from trainer.tiny.prose import Prose
from trainer.tiny.small_talk import SMALL_TALK
from trainer.tiny.world import HOME, UNKNOWN, USER, Fact, person_fact, random_value

DAYS = tuple(f"2026-{month:02d}-{day:02d}" for month in range(1, 13) for day in range(1, 29))


@dataclass(frozen=True, slots=True)
class Decision:
    """The tool to call, its arguments, and the thought that leads to it."""

    tool: str
    arguments: dict[str, object]
    thought: str
    stored: tuple[str, ...] = ()

    def call(self) -> ToolCall:
        """Return the decision as a message's tool call."""
        return ToolCall(function=FunctionCall(name=self.tool, arguments=json.dumps(self.arguments)))

    def text(self, *, thinking: bool) -> str:
        """Return the reply to learn."""
        lead = f"<think>\n{self.thought}\n</think>\n\n" if thinking else ""
        return lead + tool_call_text(self.call())


def user_fact(rng: random.Random) -> Fact:
    """Draw a fact about the user: a code, or occasionally the home."""
    return person_fact(rng, entity=USER, attribute=HOME if rng.random() < 0.15 else None)


def told(rng: random.Random, fact: Fact, *, news: bool = False) -> str:
    """Phrase a fact as a user would; `news` marks the replacement of an older one."""
    if fact.entity != USER:
        return (
            fact.sentence()
            if rng.random() < 0.7
            else f"Note that the {fact.attribute} of {fact.entity} is {fact.value}."
        )
    if news:
        return f"My {fact.attribute} is now {fact.value}."
    return rng.choice(
        (f"My {fact.attribute} is {fact.value}.", f"Please remember that my {fact.attribute} is {fact.value}.")
    )


def add(facts: list[Fact]) -> Decision:
    """Store the facts."""
    names = " and the ".join(f"{fact.attribute} of {fact.entity}" for fact in facts)
    entries = [
        {
            "key": f"{fact.attribute} of {fact.entity}",
            "memory_type": "UserMemory" if fact.entity == USER else "LongTermMemory",
            "value": fact.sentence(),
            "tags": [fact.attribute],
        }
        for fact in facts
    ]
    return Decision(
        "add_memory",
        {"memory_list": entries, "summary": f"Stored the {names}."},
        f"The {names} {'is' if len(facts) == 1 else 'are'} new. I store {'it' if len(facts) == 1 else 'them'}.",
        tuple(fact.sentence() for fact in facts),
    )


def search(fact: Fact) -> Decision:
    """Look up what is stored before deciding."""
    query = f"{fact.attribute} of {fact.entity}"
    return Decision("search_memory", {"query": query}, f"The {query} may have changed. I look it up.")


def buffer(attribute: str) -> Decision:
    """Wait for the rest."""
    return Decision(
        "buffer_memory", {"reason": f"The {attribute} is still missing."}, f"The {attribute} is not told yet. I wait."
    )


IGNORE = Decision("ignore_memory", {"reason": "Nothing worth keeping."}, "There is no lasting fact. I ignore it.")
KNOWN = Decision("ignore_memory", {"reason": "Already known."}, "This is stored already. I ignore it.")


@dataclass(frozen=True, slots=True)
class Told:
    """A conversation: its lines, the final decision, and, if a search comes first, that search and its results."""

    kind: str
    lines: tuple[str, ...]
    decision: Decision
    search: Decision | None = None
    stored: tuple[Fact, ...] = ()
    fact: Fact | None = None


def memory_example(rng: random.Random, profile: Profile, prose: Prose) -> Example:
    """Draw one turn of the memory writer: its first, or the one after its search."""
    told_ = scenario(rng, prose)
    kind, decision, tail = told_.kind, told_.decision, ()
    if told_.search and rng.random() < 0.25:
        kind, decision = "search", told_.search
    elif told_.search:
        tail = _search_turns(rng, told_.search, told_.stored, profile)
        decision = replace(decision, thought=f"{_compared(told_)} {decision.thought}")
    thinking = rng.random() < 0.5
    return Example(
        role="memory",
        kind=kind,
        messages=(*profile.render("memory", conversation="\n".join(told_.lines)), *tail),
        completion=decision.text(thinking=thinking),
        tools=profile.prompts["memory"].tools,
        thinking=thinking,
    )


def _search_turns(
    rng: random.Random, search: Decision, stored: tuple[Fact, ...], profile: Profile
) -> tuple[ChatMessage, ...]:
    return (
        ChatMessage(role="assistant", content="", tool_calls=(search.call(),)),
        ChatMessage(role="tool", content=memory_lines(rng, list(stored)) or profile.no_results),
    )


def _compared(told_: Told) -> str:
    """Compare the store's value with the user's, so that the decision follows from the preceding words."""
    if told_.fact is None:
        raise ValueError("only a changed fact is compared")
    held = next((fact.value for fact in told_.stored if fact.key == told_.fact.key), "nothing")
    return f"The store says {held}. The user says {told_.fact.value}."


def scenario(rng: random.Random, prose: Prose) -> Told:
    """Draw a conversation of any kind."""
    return rng.choice(_SCENARIOS)(rng, prose)


def _reply(rng: random.Random) -> list[str]:
    return [f"[assistant]: {rng.choice(ACKNOWLEDGEMENTS)}"] if rng.random() < 0.7 else []


def _add_one(rng: random.Random, prose: Prose) -> Told:
    fact = user_fact(rng) if rng.random() < 0.7 else person_fact(rng)
    talk = [f"[user]: {_chatter(rng, prose)}", *_reply(rng)] if rng.random() < 0.3 else []
    return Told("add_one", (*talk, f"[user]: {told(rng, fact)}", *_reply(rng)), add([fact]))


def _add_two(rng: random.Random, prose: Prose) -> Told:
    facts = list({fact.key: fact for fact in (user_fact(rng), user_fact(rng))}.values())
    if rng.random() < 0.5:
        lines = [f"[user]: {' '.join(told(rng, fact) for fact in facts)}", *_reply(rng)]
    else:
        lines = [line for fact in facts for line in (f"[user]: {told(rng, fact)}", *_reply(rng))]
    return Told("add_two", tuple(lines), add(facts))


def _ignore_talk(rng: random.Random, prose: Prose) -> Told:
    answer = [f"[assistant]: {_chatter(rng, prose)}"] if rng.random() < 0.5 else _reply(rng)
    return Told("ignore", (f"[user]: {_chatter(rng, prose)}", *answer), IGNORE)


def _ignore_question(rng: random.Random, prose: Prose) -> Told:
    fact = user_fact(rng)
    opening = rng.choice(("What is my", "Do you remember my"))
    value = fact.value if rng.random() < 0.7 else f"{UNKNOWN} to me"
    answer = [f"[assistant]: Your {fact.attribute} is {value}."] if rng.random() < 0.7 else _reply(rng)
    return Told("ignore", (f"[user]: {opening} {fact.attribute}?", *answer), IGNORE)


def _buffer(rng: random.Random, prose: Prose) -> Told:
    attribute = user_fact(rng).attribute
    return Told("buffer", (_promise(attribute), *_reply(rng)), buffer(attribute))


def _buffered_then_told(rng: random.Random, prose: Prose) -> Told:
    fact = user_fact(rng)
    lines = (_promise(fact.attribute), *_reply(rng), f"[user]: It is {fact.value}.", *_reply(rng))
    return Told("add_after_buffer", lines, add([fact]))


def _promise(attribute: str) -> str:
    return f"[user]: I will tell you my {attribute} in a minute."


def _update(rng: random.Random, prose: Prose) -> Told:
    """Draw a changed fact: searched first, then stored, or ignored when the store holds exactly it."""
    fact = user_fact(rng)
    stored = {other.key: other for other in (user_fact(rng) for _ in range(rng.choice((0, 0, 1, 2, 3, 4))))}
    stored.pop(fact.key, None)
    held = rng.choice(("same", "same", "other", "other", "none"))
    if held != "none":
        value = fact.value if held == "same" else random_value(rng, fact.attribute)
        stored[fact.key] = Fact(USER, fact.attribute, value)
    found = list(stored.values())
    rng.shuffle(found)
    known = fact in found
    lines = (f"[user]: {told(rng, fact, news=True)}", *_reply(rng))
    kind = "known_after_search" if known else "add_after_search"
    return Told(kind, lines, KNOWN if known else add([fact]), search(fact), tuple(found), fact)


def memory_lines(rng: random.Random, facts: list[Fact]) -> str:
    """Format memories as in search results and recalled notes."""
    return "\n".join(f"{n}. {fact.sentence()} ({rng.choice(DAYS)})" for n, fact in enumerate(facts, start=1))


def _chatter(rng: random.Random, prose: Prose) -> str:
    if rng.random() < 0.5:
        return rng.choice(SMALL_TALK)
    return " ".join(prose.slice(rng, rng.randrange(20, 160)).split())


ACKNOWLEDGEMENTS = (
    "Thank you, I will remember that.",
    "I see.",
    "Noted.",
    "All right.",
    "Of course.",
    "Take your time.",
)
_SCENARIOS: tuple[Callable[[random.Random, Prose], Told], ...] = (
    *(_add_one, _add_one, _add_two, _ignore_talk, _ignore_question, _buffer, _buffered_then_told),
    *(_update, _update, _update, _update, _update),
)
