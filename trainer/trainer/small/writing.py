"""Samples for the memory writer: a piece of conversation, and the lines to keep of it."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Final

from memloop.loops.parsing.memory_list import NOTHING, WAIT
from memloop.loops.rendering import conversation_lines
from memloop.wire.chat import ChatMessage
from memloop.wire.memory import Source
from trainer.small.facts import Told, draw_fact, draw_person, tell
from trainer.small.kinds import English
from trainer.small.sample import PROFILE, Sample, some_day

_SORTS: Final = ("ignore", "wait", "finished", "changed", "other", "own")
_WEIGHTS: Final = (43, 4, 3, 9, 17, 24)
_SORTS_TO_IGNORE: Final = {
    "greetings": 1,
    "thanks": 2,
    "moment": 4,
    "questions": 4,
    "tasks": 5,
    "world": 2,
    "requests": 8,
}


def draw_writing(english: English, rng: Random, *, sort: str | None = None) -> Sample:
    """Draw a piece of conversation of a sort; without one, sorts come in their shares."""
    chosen, at = sort or rng.choices(_SORTS, _WEIGHTS)[0], some_day(rng)
    told: list[Told] = []
    match chosen:
        case "ignore":
            turns = [ignored_line(english, rng)]
            reply = NOTHING
        case "wait":
            turns, reply = [rng.choice(english.talk["half"])], WAIT
        case _:
            told = _facts(chosen, english, rng, at)
            words = spoken(told, english, rng, changed=chosen == "changed")
            turns = [rng.choice(english.talk["half"]), words] if chosen == "finished" else [words]
            reply = "\n".join(f"{fact.fact.key(english)}: {fact.note}" for fact in told)
    golds = tuple(fact.fact.gold(english) for fact in told)
    return Sample("write", overheard(turns, at), reply, sort=chosen, golds=golds)


def ignored_line(english: English, rng: Random) -> str:
    """Draw what is said without a fact to keep."""
    sorts = list(_SORTS_TO_IGNORE)
    lines = [rng.choice(english.ignored[sort]) for sort in rng.choices(sorts, list(_SORTS_TO_IGNORE.values()), k=2)]
    held = lines if rng.random() < 0.2 else lines[:1]
    if rng.random() < 0.25:
        held = [rng.choice(english.talk["chatter"]), *held]
    return _joined(held, rng)


def spoken(told: list[Told], english: English, rng: Random, *, changed: bool = False) -> str:
    """Put told facts into a turn with the words around them."""
    talk = english.talk
    parts: list[str] = []
    for number, fact in enumerate(told):
        if number:
            link = rng.choice(talk["link"])
            parts.append(link if link[0] in ".;" else f" {link}")
        elif changed and not (fact.fact.kind.new and rng.random() < 0.4):
            parts.append(rng.choice(talk["update"]))
        elif rng.random() < 0.5:
            parts.append(rng.choice(talk["opener"]))
        parts.append((" " if parts else "") + fact.text)
    said = "".join(parts) + (rng.choice(talk["closer"]) if rng.random() < 0.4 else "")
    around = [said]
    person = told[0].fact.of
    if person is not None and person.called not in said:
        way = rng.choice(talk["intro"]).replace("{rel}", person.rel).replace("{name}", person.name)
        around = [way, said]
    elif rng.random() < 0.35:
        around = [rng.choice(talk["chatter"]), said]
    if rng.random() < 0.25:
        around.append(rng.choice(talk["ask_for_help"]))
    return _joined(around, rng)


def _facts(sort: str, english: English, rng: Random, at: datetime) -> list[Told]:
    if sort == "changed":
        changing = [kind for kind in english.kinds if kind.one]
        fact = draw_fact(english, rng, kind=rng.choice(changing))
        return [tell(fact, english, rng, at=at, changed=rng.random() < 0.6)]
    count = 1 if sort == "finished" else rng.choices((1, 2, 3), (60, 28, 12))[0]
    person = draw_person(english, rng) if sort == "other" else None
    drawn = {fact.kind.name: fact for fact in (draw_fact(english, rng, of=person) for _ in range(count))}
    by_pronoun = rng.random() < 0.6
    return [
        tell(fact, english, rng, at=at, by_pronoun=person is not None and (by_pronoun or number > 0))
        for number, fact in enumerate(drawn.values())
    ]


def overheard(turns: list[str], at: datetime) -> tuple[ChatMessage, ...]:
    """Return the writer's prompt for turns of the user, the only ones that it is shown."""
    said = [Source(role="user", content=text, timestamp=at) for text in turns]
    return PROFILE.render("memory", conversation=conversation_lines(said, PROFILE.turns))


def _joined(parts: list[str], rng: Random) -> str:
    careful = rng.random() < 0.75
    ended = [part if part.endswith((".", "!", "?")) else f"{part}." for part in parts[:-1]]
    last = parts[-1] if parts[-1].endswith((".", "!", "?")) or rng.random() < 0.3 else f"{parts[-1]}."
    return " ".join(_started(part, careful) for part in (*ended, last))


def _started(text: str, careful: bool) -> str:
    return text[:1].upper() + text[1:] if careful else text
