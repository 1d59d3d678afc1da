"""Samples for relating a new memory to stored ones, and for answering from recalled ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Final

from memloop.loops.relating import pair
from memloop.loops.rendering import memory_line, ranked_lines
from memloop.wire.chat import ChatMessage
from memloop.wire.memory import MemoryDraft, MemoryItem
from trainer.small.facts import Fact, Someone, Told, another_value, draw_fact, draw_person, tell
from trainer.small.kinds import English, Kind
from trainer.small.persons import told_to_user
from trainer.small.sample import PROFILE, Sample, by_rank, some_day

UNKNOWN: Final = "I don't know, you haven't told me."
"""The answer to what no note holds."""
_CHANGING: Final = 0.8
"""Share of the new memories that a later one may replace."""
_OLDER: Final = 0.3
"""Share of the notes that an older one of the same matter lies beside: a change that was not seen when it was told."""
_OTHER_TOPICS: Final = (
    "current {key}",
    "{name}",
    "the {key}",
    "{last}",
    "new {key}",
    "{key} now",
    "my {key}",
    "{key}s",
)


def draw_relating(english: English, rng: Random, *, sort: str | None = None) -> list[Sample]:
    """Draw a new memory beside each of some stored ones near it: older states of it, other words for it, other facts.

    With a ``sort`` the first sample is of that sort: ``updates``, ``same`` or ``new``. Other words for a memory update
    it too: a small model that calls a change ``same`` would lose it. Nearly half are related: where one in five was,
    the model learned to say ``new`` to all.
    """
    at = some_day(rng)
    changing = sort in {"updates", "same"} or (sort is None and rng.random() < _CHANGING)
    fact = _changing(english, rng) if changing else draw_fact(english, rng, of=_maybe_person(english, rng))
    told = tell(fact, english, rng, at=at, changed=fact.kind.one and rng.random() < 0.5)
    key = fact.key(english) if rng.random() < 0.6 else _topic_of_its_own(fact, english, rng)
    draft = MemoryDraft(key=key, value=told.note, memory_type="UserMemory")
    near = [("new", held) for held in _beside(fact, english, rng, at, most=6)]
    if fact.kind.one and sort != "new":
        before = (another_value(fact, english, rng) for _ in range(2))
        near += [("updates", tell(old, english, rng, at=at, changed=rng.random() < 0.2)) for old in before]
        near.append(("same", tell(fact, english, rng, at=at)))
    rng.shuffle(near)
    near.sort(key=lambda each: each[0] != sort)
    return [
        compared(draft, held.note, _topic_of_its_own(held.fact, english, rng), related, at, rng)
        for related, held in near
    ]


def draw_answers(
    english: English, rng: Random, *, questions: int = 4, most_notes: int = 10, known: float = 0.72
) -> list[Sample]:
    """Draw notes, and questions about them and about what they do not hold; all share the notes' message.

    ``known`` is the share of questions that a note answers; as the store serves the notes, most are about the first.
    """
    at = some_day(rng)
    people = [draw_person(english, rng) for _ in range(2)]
    drawn = [
        draw_fact(english, rng, of=rng.choice(people) if rng.random() < 0.35 else None)
        for _ in range(rng.randint(1, most_notes))
    ]
    facts = list({(fact.of, _topic(fact)): fact for fact in drawn}.values())
    dated = list[tuple[Told, datetime, Told]]()
    for fact in facts:
        told_at = at - timedelta(days=rng.randrange(400))
        outdated, changed = fact.kind.one and rng.random() < _OLDER, rng.random() < 0.7
        note = tell(fact, english, rng, at=at, changed=outdated and changed)
        dated.append((note, told_at, note))
        if outdated:
            held_at = told_at - timedelta(days=rng.randrange(0 if changed and fact.kind.new else 1, 400))
            dated.append((tell(another_value(fact, english, rng), english, rng, at=at), held_at, note))
    rng.shuffle(dated)
    before = PROFILE.render("recall", memories=ranked_lines([memory_line(told.note, day) for told, day, _ in dated]))
    notes = [newest for _, _, newest in dated]
    return [_asked(before, notes, people, english, rng, known) for _ in range(questions)]


def _asked(
    before: tuple[ChatMessage, ...],
    notes: list[Told],
    people: list[Someone],
    english: English,
    rng: Random,
    known_share: float,
) -> Sample:
    known = rng.random() < known_share
    if known:
        note = notes[by_rank(range(len(notes)), rng)]
        fact, reply, golds = note.fact, told_to_user(note.note), (note.fact.gold(english),)
    else:
        fact, reply, golds = _absent(notes, people, english, rng), UNKNOWN, ()
    words = fact.question(english, rng)
    if rng.random() < 0.3:
        words = f"{rng.choice(english.talk['asking'])} {words[:1].lower()}{words[1:]}"
    question = ChatMessage(role="user", content=words)
    return Sample("answer", (*before, question), reply, sort="known" if known else "unknown", golds=golds)


def _absent(notes: list[Told], people: list[Someone], english: English, rng: Random) -> Fact:
    """Draw a fact that no note holds; often one that a note holds of somebody else."""
    held = {(note.fact.of, _topic(note.fact)) for note in notes}
    while True:
        kind = notes[by_rank(range(len(notes)), rng)].fact.kind if rng.random() < 0.35 else None
        of = rng.choice((None, *people))
        if kind is not None and of is not None and kind.own:
            continue
        fact = draw_fact(english, rng, of=of, kind=kind)
        if (of, _topic(fact)) not in held:
            return fact


def _topic(fact: Fact) -> str:
    """Kinds that one question would ask for together share their first word."""
    return fact.kind.key.split()[-1]


def _changing(english: English, rng: Random) -> Fact:
    of = _maybe_person(english, rng)
    kinds = [kind for kind in english.kinds if kind.one and not (of and kind.own)]
    return draw_fact(english, rng, of=of, kind=rng.choice(kinds))


def _maybe_person(english: English, rng: Random) -> Someone | None:
    return draw_person(english, rng) if rng.random() < 0.25 else None


def _beside(fact: Fact, english: English, rng: Random, at: datetime, *, most: int) -> list[Told]:
    """Draw up to ``most`` stored memories that are near but another fact.

    They are of another person, of another kind (half of these stand near it in their file, so they speak of similar
    things), or of a kind of which several hold.
    """
    held: list[Told] = []
    for _ in range(rng.randint(1, most)):
        chance = rng.random()
        if chance < 0.3 and not fact.kind.own:
            other = draw_fact(english, rng, of=draw_person(english, rng) if fact.of is None else None, kind=fact.kind)
        elif chance < 0.45 and not fact.kind.one and "{" in fact.kind.gold:
            other = another_value(fact, english, rng)
        else:
            of = fact.of if rng.random() < 0.6 else None
            other = draw_fact(english, rng, of=of, kind=_alike(fact, of, english, rng) if rng.random() < 0.5 else None)
        if other.kind.key != fact.kind.key or other.of != fact.of or not fact.kind.one:
            held.append(tell(other, english, rng, at=at))
    return held or [tell(draw_fact(english, rng, kind=_other_kind(fact, english, rng)), english, rng, at=at)]


def _alike(fact: Fact, of: Someone | None, english: English, rng: Random) -> Kind | None:
    """Return a kind that stands near the fact's in its file, if it can be said of the person."""
    place = english.kinds.index(fact.kind) + rng.choice((-3, -2, -1, 1, 2, 3))
    kind = english.kinds[place % len(english.kinds)]
    return None if of and kind.own else kind


def _other_kind(fact: Fact, english: English, rng: Random) -> Kind:
    return rng.choice([kind for kind in english.kinds if kind.key != fact.kind.key])


def compared(draft: MemoryDraft, note: str, topic: str, related: str, at: datetime, rng: Random) -> Sample:
    """Return the turn that compares a new memory with one stored some days ago.

    The store does not list those of the new memory's own topic.
    """
    before = at - timedelta(days=rng.choice((0, rng.randrange(1, 30), rng.randrange(1, 500))))
    stored = MemoryItem(
        id="m",
        memory=note,
        key=topic,
        memory_type="UserMemory",
        user_id="u",
        valid_from=before,
        created_at=before,
        updated_at=before,
        hash="h",
    )
    messages = PROFILE.render("relate", memories=pair(draft, stored))
    return Sample("relate", messages, "1: new" if related == "new" else "1: updates 1", sort=related)


def _topic_of_its_own(fact: Fact, english: English, rng: Random) -> str:
    """Draw a topic that is not the kind's: a writer invents one each time, and at times a wrong one."""
    kind = fact.kind if rng.random() < 0.7 else rng.choice(english.kinds)
    topic = rng.choice(_OTHER_TOPICS).format(key=kind.key, last=kind.key.split()[-1], name=kind.name)
    return (topic if fact.of is None else f"{fact.of.name}'s {topic}").replace("_", " ")
