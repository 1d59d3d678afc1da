"""Makes up conversations of two friends over a year, with questions and the turns that answer them. Licence-free.

Each kind of question is hard for one method: paraphrases for BM25, rare names for dense vectors, two speakers with the
same topic for both, answers that share no word with their question (they stand in the next turn), the same event in
several months, changed facts, and questions about two facts. The seed determines everything.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from evaluation.retrieval import phrases
from trainer.data.dialogues.dialogue import Turn

Kind: TypeAlias = Literal["paraphrase", "name", "speaker", "neighbour", "temporal", "update", "multi"]
ASKED_AT = datetime(2026, 1, 5, tzinfo=UTC)
_FIRST_DAY = datetime(2025, 1, 6, 18, tzinfo=UTC)
_SESSIONS = 12
_CHATTER = 14
"""Turns of small talk per session."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the IDs of the turns that answer it."""

    text: str
    evidence: tuple[str, ...]
    kind: Kind
    answer: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Two speakers' sessions in time order; a turn's ID is ``{session}:{number}``."""

    name: str
    speakers: tuple[str, str]
    sessions: tuple[tuple[Turn, ...], ...]
    questions: tuple[Question, ...]

    @property
    def turns(self) -> Iterator[Turn]:
        """Yield all turns."""
        return (turn for session in self.sessions for turn in session)


@dataclass(slots=True)
class _Line:
    """A turn without a position; questions refer to it by ``tag``."""

    speaker: str
    text: str
    tag: str = ""


@dataclass(slots=True)
class _Draft:
    """A conversation under construction: sessions of exchanges, and questions that name their evidence by tag."""

    sessions: list[list[list[_Line]]] = field(default_factory=lambda: [[] for _ in range(_SESSIONS)])
    questions: list[tuple[str, tuple[str, ...], Kind, str]] = field(
        default_factory=list[tuple[str, tuple[str, ...], Kind, str]]
    )

    def say(self, session: int, *lines: _Line) -> None:
        """Add an exchange whose lines stay together."""
        self.sessions[session].append(list(lines))

    def ask(self, text: str, *tags: str, kind: Kind, answer: str) -> None:
        """Add a question."""
        self.questions.append((text, tags, kind, answer))


def conversation(seed: int) -> Conversation:
    """Generate the conversation of a seed."""
    chance = random.Random(f"dialogue {seed}")
    one, other = chance.sample(phrases.NAMES, 2)
    draft = _Draft()
    for add in (_paraphrases, _names, _shared_topics, _answers_beside, _months, _changes, _pairs):
        add(draft, chance, (one, other))
    for session in range(_SESSIONS):
        for _ in range(_CHATTER // 2):
            draft.say(session, *_small_talk(chance, one, other))
        chance.shuffle(draft.sessions[session])
    return _placed(f"seed {seed}", (one, other), draft)


def _placed(name: str, speakers: tuple[str, str], draft: _Draft) -> Conversation:
    places: dict[str, str] = {}
    sessions: list[tuple[Turn, ...]] = []
    for session, exchanges in enumerate(draft.sessions, start=1):
        said_at = _session_day(session - 1)
        lines = [line for exchange in exchanges for line in exchange]
        turns = [Turn(f"{session}:{at}", line.speaker, line.text, said_at) for at, line in enumerate(lines)]
        places.update({line.tag: turn.id for line, turn in zip(lines, turns, strict=True) if line.tag})
        sessions.append(tuple(turns))
    questions = tuple(
        Question(text, tuple(places[tag] for tag in tags), kind, answer) for text, tags, kind, answer in draft.questions
    )
    return Conversation(name, speakers, tuple(sessions), questions)


def _session_day(session: int) -> datetime:
    """Return the session's day: one session a month."""
    return _FIRST_DAY + timedelta(days=30.4 * session)


def _month(session: int) -> str:
    return f"{_session_day(session):%B}"


def _paraphrases(draft: _Draft, chance: random.Random, speakers: Sequence[str]) -> None:
    for number, (said, asked, answer) in enumerate(chance.sample(phrases.PARAPHRASES, 6)):
        speaker = chance.choice(speakers)
        draft.say(chance.randrange(_SESSIONS), _Line(speaker, said, f"p{number}"))
        draft.ask(asked.format(who=speaker), f"p{number}", kind="paraphrase", answer=answer)


def _names(draft: _Draft, chance: random.Random, speakers: Sequence[str]) -> None:
    surnames = chance.sample(phrases.SURNAMES, 4)
    for number, (surname, (said, asked)) in enumerate(zip(surnames, chance.sample(phrases.PEOPLE, 4), strict=True)):
        speaker = chance.choice(speakers)
        draft.say(chance.randrange(_SESSIONS), _Line(speaker, said.format(name=surname), f"n{number}"))
        draft.ask(asked.format(name=surname), f"n{number}", kind="name", answer=surname)


def _shared_topics(draft: _Draft, chance: random.Random, speakers: Sequence[str]) -> None:
    """Add similar facts about both speakers; the question asks about one of them."""
    for number, (said, asked, values) in enumerate(chance.sample(phrases.TOPICS, 4)):
        for speaker, value in zip(speakers, chance.sample(values, 2), strict=True):
            tag = f"s{number}{speaker}"
            draft.say(chance.randrange(_SESSIONS), _Line(speaker, chance.choice(said).format(value=value), tag))
            draft.ask(asked.format(who=speaker), tag, kind="speaker", answer=value)


def _answers_beside(draft: _Draft, chance: random.Random, speakers: Sequence[str]) -> None:
    for number, (prompt, reply, asked) in enumerate(chance.sample(phrases.BESIDE, 5)):
        speaker, friend = chance.sample(list(speakers), 2)
        draft.say(chance.randrange(_SESSIONS), _Line(friend, prompt), _Line(speaker, reply, f"b{number}"))
        draft.ask(asked.format(who=speaker), f"b{number}", kind="neighbour", answer=reply)


def _months(draft: _Draft, chance: random.Random, speakers: Sequence[str]) -> None:
    """Add the same event in several months; the question names one month."""
    for number, (said, asked, values) in enumerate(chance.sample(phrases.MONTHLY, 3)):
        speaker = chance.choice(speakers)
        told = dict(zip(chance.sample(range(1, _SESSIONS), 4), chance.sample(values, 4), strict=True))
        for session, value in told.items():
            draft.say(session, _Line(speaker, chance.choice(said).format(value=value), f"m{number}.{session}"))
        for session in list(told)[:2]:
            when = chance.choice(("in {month}", "last {month}", "back in {month}")).format(month=_month(session))
            draft.ask(
                asked.format(who=speaker, when=when), f"m{number}.{session}", kind="temporal", answer=told[session]
            )


def _changes(draft: _Draft, chance: random.Random, speakers: Sequence[str]) -> None:
    for number, (said, asked, values) in enumerate(chance.sample(phrases.CHANGING, 3)):
        speaker = chance.choice(speakers)
        told = dict(zip(sorted(chance.sample(range(_SESSIONS), 3)), chance.sample(values, 3), strict=True))
        for session, value in told.items():
            draft.say(session, _Line(speaker, chance.choice(said).format(value=value), f"c{number}.{session}"))
        newest = list(told)[-1]
        draft.ask(asked.format(who=speaker), f"c{number}.{newest}", kind="update", answer=told[newest])


def _pairs(draft: _Draft, chance: random.Random, speakers: Sequence[str]) -> None:
    """Add one question about two facts from different sessions."""
    facts = chance.sample(phrases.APART, 6)
    for number in range(3):
        (said, asked), (said2, asked2) = facts[2 * number : 2 * number + 2]
        tags = (f"x{number}a", f"x{number}b")
        chosen = [chance.choice(speakers), chance.choice(speakers)]
        for text, tag, speaker in zip((said, said2), tags, chosen, strict=True):
            draft.say(chance.randrange(_SESSIONS), _Line(speaker, text, tag))
        question = f"{asked.format(who=chosen[0])} and {asked2.format(who=chosen[1])}?"
        draft.ask(question[0].upper() + question[1:], *tags, kind="multi", answer=f"{said} {said2}")


def _small_talk(chance: random.Random, one: str, other: str) -> list[_Line]:
    first, second = chance.sample((one, other), 2)
    topic = chance.choice(phrases.CHAT_TOPICS)
    opening = chance.choice(phrases.OPENINGS).format(name=second, topic=topic)
    return [_Line(first, opening), _Line(second, chance.choice(phrases.REPLIES).format(name=first, topic=topic))]
