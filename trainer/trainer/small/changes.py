"""What people tell, and how it changes later, in voices that no template has: written by hand, for training alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from pydantic import BaseModel, ConfigDict

from memloop.loops.parsing.memory_list import NOTHING
from memloop.loops.rendering import memory_line, ranked_lines
from memloop.wire.chat import ChatMessage
from memloop.wire.memory import MemoryDraft
from trainer.small.facts import draw_fact, tell
from trainer.small.kinds import English
from trainer.small.persons import told_to_user
from trainer.small.relating import UNKNOWN, compared
from trainer.small.sample import PROFILE, Sample, by_rank, some_day
from trainer.small.writing import draw_writing, overheard

_ENGLISH: Final = Path(__file__).parent / "english"
_NEAR: Final = 0.5
"""Share of the questions without an answer that ask for more of a noted matter, where the data has such questions."""


class Change(BaseModel):
    """Two turns of one matter with their notes, and questions that the later note answers.

    ``gold`` are the deciding words of the later note; ``near`` are questions about the matter that neither answers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    topic: str
    first: str
    first_note: str
    then: str
    then_note: str
    ask: tuple[str, ...]
    gold: str
    near: tuple[str, ...] = ()

    def turns(self) -> tuple[Turn, Turn]:
        """Return what is told before and after."""
        return (
            Turn(said=self.first, notes=((self.topic, self.first_note),)),
            Turn(said=self.then, notes=((self.topic, self.then_note),)),
        )


class Turn(BaseModel):
    """A turn that tells several facts, or none at all: their topics and notes, and a question about each."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    said: str
    notes: tuple[tuple[str, str], ...]
    ask: tuple[str, ...] = ()


@cache
def changes() -> tuple[Change, ...]:
    """Return all changes."""
    files = sorted((_ENGLISH / "told").glob("*.jsonl"))
    return tuple(Change.model_validate_json(line) for file in files for line in file.read_text("utf-8").splitlines())


@cache
def turns() -> tuple[Turn, ...]:
    """Return all turns of several facts, or none."""
    return tuple(Turn.model_validate_json(line) for line in (_ENGLISH / "turns.jsonl").read_text("utf-8").splitlines())


def draw_told(english: English, rng: Random) -> list[Sample]:
    """Draw turns of which one note is to be kept, some of several notes or none, and lines to ignore."""
    samples = [draw_writing(english, rng, sort="ignore") for _ in range(2)]
    drawn = [rng.choice(each.turns()) for each in rng.sample(changes(), 3)] + rng.sample(turns(), 2)
    for turn in drawn:
        reply = "\n".join(f"{topic}: {note}" for topic, note in turn.notes) or NOTHING
        samples.append(
            Sample("write", overheard([turn.said], some_day(rng)), reply, sort="own" if turn.notes else "ignore")
        )
    return samples


def draw_changed(english: English, rng: Random) -> list[Sample]:
    """Draw a later note beside the one that it changes, and beside two of other matters."""
    at = some_day(rng)
    change, *others = rng.sample(changes(), 3)
    topic = change.topic if rng.random() < 0.5 else others[0].topic
    draft = MemoryDraft(key=topic, value=change.then_note, memory_type="UserMemory")
    near = [("updates", change.topic, change.first_note)]
    near += [("new", each.topic, rng.choice((each.first_note, each.then_note))) for each in others]
    rng.shuffle(near)
    return [compared(draft, note, topic, related, at, rng) for related, topic, note in near]


def draw_asked(english: English, rng: Random, *, known: float, questions: int = 4) -> list[Sample]:
    """Draw notes of several matters, and questions about them and about what no note holds: another matter, or more of
    a noted one.

    Both notes of a change may stand there: the later one counts. The earlier one alone answers where the data has no
    questions ``near``: with them, questions may be about the change itself.
    """
    at = some_day(rng)
    drawn = rng.sample(changes(), rng.randint(2, 8))
    noted, unknown = drawn[: max(1, len(drawn) - 2)], drawn[max(1, len(drawn) - 2) :]
    lines = list[tuple[str, _Noted | None]]()
    for each in noted:
        told_at = at - timedelta(days=rng.randrange(400))
        changed, held_at = bool(each.near) or rng.random() < 0.6, told_at - timedelta(days=rng.randrange(400))
        answer = _Noted(each.then_note if changed else each.first_note, each.ask, each.near)
        if not changed or rng.random() < 0.5:
            lines.append((memory_line(each.first_note, held_at), answer))
        if changed:
            lines.append((memory_line(each.then_note, told_at), answer))
    for turn in rng.sample(turns(), rng.randint(0, 2)):
        for (_, note), ask in zip(turn.notes, turn.ask, strict=True):
            lines.append((memory_line(note, at - timedelta(days=rng.randrange(400))), _Noted(note, (ask,))))
    for _ in range(rng.randint(0, 2)):
        lines.append((memory_line(tell(draw_fact(english, rng), english, rng, at=at).note, at), None))
    rng.shuffle(lines)
    before = PROFILE.render("recall", memories=ranked_lines([line for line, _ in lines]))
    answers = {place: answer for place, (_, answer) in enumerate(lines) if answer}
    samples = list[Sample]()
    for _ in range(questions):
        asked = answers[by_rank([*answers], rng)]
        if rng.random() < known:
            words, reply = rng.choice(asked.ask), told_to_user(asked.note)
        elif asked.near and rng.random() < _NEAR:
            words, reply = rng.choice(asked.near), UNKNOWN
        else:
            words, reply = rng.choice(rng.choice(unknown).ask), UNKNOWN
        question = ChatMessage(role="user", content=words)
        samples.append(Sample("answer", (*before, question), reply, sort="unknown" if reply == UNKNOWN else "known"))
    return samples


@dataclass(frozen=True, slots=True)
class _Noted:
    """A note that answers some questions, and leaves those ``near`` it open."""

    note: str
    ask: tuple[str, ...]
    near: tuple[str, ...] = ()
