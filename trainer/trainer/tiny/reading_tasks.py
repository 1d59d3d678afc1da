"""Makes turns of the reading loops: read, answer, judge and integrate, in the profile's own prompts."""

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
    UNKNOWN,
    Fact,
    Question,
    person_fact,
    place_fact,
    question_of,
    random_fact,
    random_pattern,
    random_value,
    sought,
)

CHARS_PER_TOKEN = 3.05
_TOKENS_PER_FACT = 16
_OTHER_OWNERS = 0.8
"""In a crowded section: the model confuses names, seldom the attributes of one owner."""

_LATE = 0.5
"""The share of a section after which a hasty reader overlooks facts."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A question and its true facts, home first when there are two."""

    question: Question
    facts: tuple[Fact, ...]


def random_scene(rng: random.Random, *, two_hop_share: float = 0.35) -> Scene:
    """Draw a one-hop question about a person or place, or a two-hop question through a home."""
    if rng.random() < two_hop_share:
        home = person_fact(rng, attribute=HOME)
        code = place_fact(rng, entity=home.value)
        return Scene(Question(home.entity, code.attribute, 2), (home, code))
    fact = random_fact(rng)
    return Scene(Question(fact.entity, fact.attribute), (fact,))


def home_scene(rng: random.Random) -> Scene:
    """Draw a one-hop question about a home: its answer is a name, which a box writes without the blank before it."""
    home = person_fact(rng, attribute=HOME)
    return Scene(question_of(home), (home,))


def distractor(rng: random.Random, scene: Scene, near_misses: float = 0.5, other_owners: float = 0.5) -> Fact:
    """Draw a fact that does not help; a share of them nearly does: it has the owner of a helping fact or, for
    `other_owners` of them, its attribute.
    """
    for _ in range(20):
        fact = _near_miss(rng, scene, other_owners) if rng.random() < near_misses else random_fact(rng)
        keys = {true.key for true in scene.facts}
        if fact.key not in keys:
            return fact
    return random_fact(rng)


def _near_miss(rng: random.Random, scene: Scene, other_owners: float) -> Fact:
    near = rng.choice(scene.facts)
    person = near.entity in PEOPLE
    if rng.random() < 1.0 - other_owners:
        codes = (HOME, *PERSON_CODES) if person else PLACE_CODES
        attribute = rng.choice(codes)
        return Fact(near.entity, attribute, random_value(rng, attribute))
    entity = rng.choice(PEOPLE if person else PLACES)
    return Fact(entity, near.attribute, random_value(rng, near.attribute))


def read_example(
    rng: random.Random,
    profile: Profile,
    prose: Prose,
    *,
    section_tokens: int,
    near_misses: float,
    crowded: bool = False,
    overlooked: float = 0.0,
) -> Example:
    """Draw one turn of the reading loop: the section may hold helping facts, others, or only prose.

    A crowded section is full of facts that nearly answer. `overlooked` is the share of the facts late in a section that
    the demonstrated reply leaves out, as a hasty reader does.
    """
    scene = random_scene(rng)
    known = _known_before(rng, scene)
    room = max(1, section_tokens // _TOKENS_PER_FACT)
    if crowded:
        others = [distractor(rng, scene, 1.0, _OTHER_OWNERS) for _ in range(rng.randint(room // 2, room))]
    else:
        room = min(5, room)
        others = [distractor(rng, scene, near_misses) for _ in range(rng.choice((0, 1, 1, 2, 3, room)))]
    section_facts = _section_facts(rng, scene, known, others, room)
    section = _section(rng, prose, section_facts, section_tokens)
    fresh = not known and rng.random() < 0.4
    noticed = _noticed(rng, section, section_facts, overlooked)
    before, after = sought(scene.question, known), sought(scene.question, (*known, *noticed))
    return Example(
        role="read",
        kind=_read_kind(before, after, section_facts),
        messages=profile.render(
            "read",
            problem=scene.question.text(rng.randrange(2)),
            memory=profile.empty_memory if fresh else memory_text(before),
            section=section,
        ),
        completion=memory_text(after),
    )


def _noticed(rng: random.Random, section: str, facts: list[Fact], overlooked: float) -> list[Fact]:
    """Return the facts without a share of those that stand late in the section."""
    if not overlooked:
        return facts
    late = section[int(len(section) * _LATE) :]
    return [fact for fact in facts if not (_states(late, fact) and rng.random() < overlooked)]


def _states(text: str, fact: Fact) -> bool:
    return any(fact.sentence(pattern) in text for pattern in ("canonical", "past"))


def _known_before(rng: random.Random, scene: Scene) -> tuple[Fact, ...]:
    count = rng.choice((0, 0, 1)) if len(scene.facts) == 1 else rng.choice((0, 0, 1, 1, 1, 2))
    return scene.facts[:count]


def _section_facts(
    rng: random.Random, scene: Scene, known: tuple[Fact, ...], others: list[Fact], room: int
) -> list[Fact]:
    """Draw at most one fact more than fits: the others, and often the missing one."""
    facts = list(others)
    missing = [fact for fact in scene.facts if fact not in known]
    if missing and rng.random() < 0.55:
        facts.append(missing[0])
    if len(missing) == 2 and rng.random() < 0.4:
        facts.append(missing[1])
    if known and rng.random() < 0.05:
        facts.append(rng.choice(known))
    rng.shuffle(facts)
    return facts[: room + 1]


def _section(rng: random.Random, prose: Prose, facts: list[Fact], tokens: int) -> str:
    """Make a section of about `tokens` tokens with the facts in it, occasionally with a cut fact at an end."""
    sentences = [fact.sentence(random_pattern(rng)) for fact in facts]
    spare = tokens - 10 * len(sentences)
    text = plant(rng, prose.slice(rng, max(0, int(spare * CHARS_PER_TOKEN))), sentences)
    if rng.random() < 0.06:
        text = _cut_fact(rng) + " " + text
    if rng.random() < 0.06:
        text = f"{text} {random_fact(rng).sentence().rsplit(' ', rng.randrange(1, 4))[0]}"
    return text


def _cut_fact(rng: random.Random) -> str:
    """Return the end of a fact whose attribute fell into the section before."""
    fact = random_fact(rng)
    return rng.choice((f" of {fact.entity} is {fact.value}.", f" is {fact.value}.", f"{fact.value}."))


def _read_kind(before: tuple[Fact, ...], after: tuple[Fact, ...], told: list[Fact]) -> str:
    had, has = (sum(fact.known for fact in facts) for facts in (before, after))
    return f"add_{had}_to_{has}" if has > had else f"keep_{had}_{'distractors' if told else 'prose'}"


def answer_example(rng: random.Random, profile: Profile) -> Example:
    """Draw the last turn: the value from the memory, or `unknown` when the memory does not hold it."""
    scene = random_scene(rng) if rng.random() < 0.7 else home_scene(rng)
    held = sought(scene.question, scene.facts[: rng.choice((0, 1, 1, 2, 2, 2))])
    complete = len(held) == len(scene.facts) and held[-1].known
    return Example(
        role="answer",
        kind=f"{scene.question.hops}_hop_{'known' if complete else 'unknown'}",
        messages=profile.render(
            "answer",
            problem=scene.question.text(rng.randrange(2)),
            memory=_shown(rng, held, profile),
        ),
        completion=f"\\boxed{{{scene.facts[-1].value if complete else UNKNOWN}}}",
    )


def _shown(rng: random.Random, held: tuple[Fact, ...], profile: Profile) -> str:
    if not held[0].known and rng.random() < 0.3:
        return profile.empty_memory
    return memory_text(held, confirmed=_random_marks(rng, held))


def _random_marks(rng: random.Random, held: tuple[Fact, ...]) -> frozenset[Fact]:
    return frozenset(fact for fact in held if fact.known and rng.random() < 0.15)


def judge_example(rng: random.Random, profile: Profile) -> Example:
    """Draw a judgement: the missing query, or empty when the memory suffices or every open question was asked."""
    scene = random_scene(rng, two_hop_share=0.6)
    held = sought(scene.question, scene.facts[: rng.choice((0, 1, 1, 2))])
    history = [(question_of(fact), fact.value) for fact in held if fact.known and rng.random() < 0.3]
    missing = next((question_of(fact) for fact in held if not fact.known), None)
    kind = "ask" if missing else "enough"
    if missing and rng.random() < 0.3:
        history.append((missing, UNKNOWN))
        missing, kind = None, "asked_before"
    return Example(
        role="judge",
        kind=kind,
        messages=profile.render(
            "judge",
            question=scene.question.text(rng.randrange(2)),
            memory=_shown(rng, held, profile),
            query_history=history_text(history, profile),
        ),
        completion=f"<query>{missing.text()}</query>" if missing else "",
    )


def history_text(history: list[tuple[Question, str]], profile: Profile) -> str:
    """Format earlier queries and their results as the loop does."""
    lines = [f"<query>{asked.text()}</query> <result>{result}</result>" for asked, result in history]
    return Markup("\n".join(lines)) if lines else profile.no_history


def integrate_example(rng: random.Random, profile: Profile) -> Example:
    """Draw the root memory after a sub-answer: added, confirmed, corrected, or unchanged."""
    scene = random_scene(rng, two_hop_share=0.7)
    held = sought(scene.question, scene.facts[: rng.randrange(len(scene.facts) + 1)])
    kind = rng.choice(("add", "add", "confirm", "confirm", "correct", "correct", "unknown"))
    target = _target(rng, held, kind)
    if target is None:
        return integrate_example(rng, profile)
    result = _result(rng, scene, target, kind)
    marks = _random_marks(rng, held)
    after = (
        sought(scene.question, (Fact(target.entity, target.attribute, result), *held)) if kind != "unknown" else held
    )
    marks_after = marks | {target} if kind == "confirm" else marks
    return Example(
        role="integrate",
        kind=kind,
        messages=profile.render(
            "integrate",
            question=scene.question.text(rng.randrange(2)),
            memory=memory_text(held, confirmed=marks),
            subquestion=question_of(target).text(),
            subanswer=result,
        ),
        completion=memory_text(after, confirmed=marks_after),
    )


def _target(rng: random.Random, held: tuple[Fact, ...], kind: str) -> Fact | None:
    """Return the requested fact: an open one, or a known one to confirm or correct; None when there is none."""
    fitting = [fact for fact in held if fact.known == (kind in ("confirm", "correct"))]
    return rng.choice(fitting) if fitting else None


def _result(rng: random.Random, scene: Scene, target: Fact, kind: str) -> str:
    if kind == "unknown":
        return UNKNOWN
    if kind == "correct":
        return _other_value(rng, target)
    return next(fact.value for fact in scene.facts if fact.key == target.key)


def _other_value(rng: random.Random, fact: Fact) -> str:
    while (value := random_value(rng, fact.attribute)) == fact.value:
        pass
    return value
