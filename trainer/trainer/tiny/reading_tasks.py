"""Turns of the reading loops: read, answer, judge and integrate, in the profile's own prompts."""

from __future__ import annotations

import random
from dataclasses import dataclass

from memloop.profiles import Markup, Profile
from trainer.tiny.example import Example, memory_text
from trainer.tiny.prose import Prose, plant
from trainer.tiny.world import (
    HOME,
    PEOPLE,
    PERSON_CODES,
    PLACE_CODES,
    PLACES,
    Fact,
    Question,
    person_fact,
    place_fact,
    random_fact,
    random_pattern,
    random_value,
    relevant,
)

CHARS_PER_TOKEN = 3.6


@dataclass(frozen=True, slots=True)
class Scene:
    """A question, its true facts (home first when there are two), and the profile's words for nothing."""

    question: Question
    facts: tuple[Fact, ...]


def random_scene(rng: random.Random, *, two_hop_share: float = 0.35) -> Scene:
    """A one-hop question about a person or place, or a two-hop question through a home."""
    if rng.random() < two_hop_share:
        home = person_fact(rng, attribute=HOME)
        code = place_fact(rng, entity=home.value)
        return Scene(Question(home.entity, code.attribute, 2), (home, code))
    fact = random_fact(rng)
    return Scene(Question(fact.entity, fact.attribute), (fact,))


def distractor(rng: random.Random, scene: Scene, near_misses: float = 0.5) -> Fact:
    """A fact that does not help; a share of them has the person or the attribute of a fact that does."""
    for _ in range(20):
        fact = _near_miss(rng, scene) if rng.random() < near_misses else random_fact(rng)
        keys = {true.key for true in scene.facts}
        if fact.key not in keys:
            return fact
    return random_fact(rng)


def _near_miss(rng: random.Random, scene: Scene) -> Fact:
    near = rng.choice(scene.facts)
    person = near.entity in PEOPLE
    if rng.random() < 0.5:
        codes = (HOME, *PERSON_CODES) if person else PLACE_CODES
        attribute = rng.choice(codes)
        return Fact(near.entity, attribute, random_value(rng, attribute))
    entity = rng.choice(PEOPLE if person else PLACES)
    return Fact(entity, near.attribute, random_value(rng, near.attribute))


def read_example(
    rng: random.Random, profile: Profile, prose: Prose, *, section_tokens: int, near_misses: float
) -> Example:
    """One turn of the reading loop: the section may hold facts that help, others, or prose only."""
    scene = random_scene(rng)
    known = _known_before(rng, scene)
    section_facts = _section_facts(rng, scene, known, section_tokens, near_misses)
    section, seen = _section(rng, prose, section_facts, section_tokens)
    after = known_after(scene.question, known, seen)
    return Example(
        role="read",
        kind=_read_kind(known, after, seen),
        messages=profile.render(
            "read",
            problem=scene.question.text(rng.randrange(2)),
            memory=memory_text(known, empty=profile.empty_memory),
            section=section,
        ),
        completion=memory_text(after, empty=profile.empty_memory),
    )


def known_after(question: Question, known: tuple[Fact, ...], seen: list[Fact]) -> tuple[Fact, ...]:
    """The facts that a perfect reader holds after a section, whatever the order of the facts in it."""
    while True:
        keys = {kept.key for kept in known}
        news = next((f for f in seen if f.key not in keys and relevant(question, known, f)), None)
        if news is None:
            return known
        known = (*known, news)


def _known_before(rng: random.Random, scene: Scene) -> tuple[Fact, ...]:
    count = rng.choice((0, 0, 1)) if len(scene.facts) == 1 else rng.choice((0, 0, 1, 1, 1, 2))
    return scene.facts[:count]


def _section_facts(
    rng: random.Random, scene: Scene, known: tuple[Fact, ...], section_tokens: int, near_misses: float
) -> list[Fact]:
    room = max(1, min(5, section_tokens // 16))
    facts = [distractor(rng, scene, near_misses) for _ in range(rng.choice((0, 1, 1, 2, 3, room)))]
    missing = [fact for fact in scene.facts if fact not in known]
    if missing and rng.random() < 0.55:
        facts.append(missing[0])
    if len(missing) == 2 and rng.random() < 0.4:
        facts.append(missing[1])
    if known and rng.random() < 0.05:
        facts.append(rng.choice(known))
    rng.shuffle(facts)
    return facts[: room + 1]


def _section(rng: random.Random, prose: Prose, facts: list[Fact], tokens: int) -> tuple[str, list[Fact]]:
    """A section of about `tokens` tokens and the facts that stand in it whole."""
    sentences = [fact.sentence(random_pattern(rng)) for fact in facts]
    spare = tokens - 10 * len(sentences)
    text = plant(rng, prose.slice(rng, max(0, int(spare * CHARS_PER_TOKEN))), sentences)
    if rng.random() < 0.06:
        text = _cut_fact(rng) + " " + text
    if rng.random() < 0.06:
        text = f"{text} {random_fact(rng).sentence().rsplit(' ', rng.randrange(1, 4))[0]}"
    return text, facts


def _cut_fact(rng: random.Random) -> str:
    """The end of a fact whose attribute fell into the section before."""
    fact = random_fact(rng)
    return rng.choice((f" of {fact.entity} is {fact.value}.", f" is {fact.value}.", f"{fact.value}."))


def _read_kind(before: tuple[Fact, ...], after: tuple[Fact, ...], seen: list[Fact]) -> str:
    if len(after) > len(before):
        return f"add_{len(before)}_to_{len(after)}"
    return f"keep_{len(before)}_{'distractors' if seen else 'prose'}"


def answer_example(rng: random.Random, profile: Profile) -> Example:
    """The last turn: the value out of the memory, or `unknown` when the memory does not hold it."""
    scene = random_scene(rng)
    held = scene.facts[: rng.choice((0, 1, 1, 2, 2, 2))]
    complete = held == scene.facts
    marks = frozenset(fact for fact in held if rng.random() < 0.15)
    shown = held if held or rng.random() < 0.7 else (distractor(rng, scene),)
    return Example(
        role="answer",
        kind=f"{scene.question.hops}_hop_{'known' if complete else 'unknown'}",
        messages=profile.render(
            "answer",
            problem=scene.question.text(rng.randrange(2)),
            memory=memory_text(shown, empty=profile.empty_memory, confirmed=marks),
        ),
        completion=f"\\boxed{{{scene.facts[-1].value if complete else 'unknown'}}}",
    )


def judge_example(rng: random.Random, profile: Profile) -> Example:
    """Nothing when the memory suffices or every open question was asked before; else the query that is missing."""
    scene = random_scene(rng, two_hop_share=0.6)
    held = scene.facts[: rng.choice((0, 1, 1, 2))]
    history = [(Question(f.entity, f.attribute), f.value) for f in held if rng.random() < 0.3]
    missing = Question(scene.facts[len(held)].entity, scene.facts[len(held)].attribute) if held != scene.facts else None
    if missing and rng.random() < 0.3:
        history.append((missing, "unknown"))
        missing = None
        kind = "asked_before"
    else:
        kind = "ask" if missing else "enough"
    marks = frozenset(fact for fact in held if rng.random() < 0.2)
    return Example(
        role="judge",
        kind=kind,
        messages=profile.render(
            "judge",
            question=scene.question.text(rng.randrange(2)),
            memory=memory_text(held, empty=profile.empty_memory, confirmed=marks),
            query_history=history_text(history, profile),
        ),
        completion=f"<query>{missing.text()}</query>" if missing else "",
    )


def history_text(history: list[tuple[Question, str]], profile: Profile) -> str:
    """Earlier queries and their results as the loop writes them."""
    lines = [f"<query>{asked.text()}</query> <result>{result}</result>" for asked, result in history]
    return Markup("\n".join(lines)) if lines else profile.no_history


def integrate_example(rng: random.Random, profile: Profile) -> Example:
    """The root memory after a sub-answer: added, confirmed, corrected, or left as it was."""
    scene = random_scene(rng, two_hop_share=0.7)
    held = list(scene.facts[: rng.randrange(len(scene.facts) + 1)])
    kind = rng.choice(("add", "add", "confirm", "correct", "unknown"))
    if kind in ("confirm", "correct") and not held:
        kind = "add"
    if kind == "add" and len(held) == len(scene.facts):
        held.pop()
    marks = {fact for fact in held if rng.random() < 0.15}
    if kind in ("add", "unknown"):
        target = scene.facts[min(len(held), len(scene.facts) - 1)]
    else:
        target = rng.choice(held)
    result = "unknown" if kind == "unknown" else target.value
    after = list(held)
    marks_after = set(marks)
    if kind == "add":
        after.append(target)
    elif kind == "confirm":
        marks_after.add(target)
    elif kind == "correct":
        result = _other_value(rng, target)
        after[after.index(target)] = corrected = Fact(target.entity, target.attribute, result)
        marks_after.discard(target)
        if target in marks:
            marks_after.add(corrected)
    return Example(
        role="integrate",
        kind=kind,
        messages=profile.render(
            "integrate",
            question=scene.question.text(rng.randrange(2)),
            memory=memory_text(held, empty=profile.empty_memory, confirmed=frozenset(marks)),
            subquestion=Question(target.entity, target.attribute).text(),
            subanswer=result,
        ),
        completion=memory_text(after, empty=profile.empty_memory, confirmed=frozenset(marks_after)),
    )


def _other_value(rng: random.Random, fact: Fact) -> str:
    while (value := random_value(rng, fact.attribute)) == fact.value:
        pass
    return value
