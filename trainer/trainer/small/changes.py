"""What people tell, and how it changes later, in voices that no template has: written by hand, for training alone."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from pydantic import BaseModel, ConfigDict

from memloop.loops.rendering import memory_line, ranked_lines
from memloop.wire.chat import ChatMessage
from memloop.wire.memory import MemoryDraft
from trainer.small.facts import draw_fact, tell
from trainer.small.kinds import English
from trainer.small.persons import told_to_user
from trainer.small.relating import UNKNOWN, compared
from trainer.small.sample import PROFILE, Sample, by_rank, some_day
from trainer.small.writing import draw_writing, overheard

_FOLDER: Final = Path(__file__).parent / "english" / "told"


class Change(BaseModel):
    """Two turns of one matter with their notes, and questions that the later note answers.

    ``gold`` are the deciding words of the later note.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    topic: str
    first: str
    first_note: str
    then: str
    then_note: str
    ask: tuple[str, ...]
    gold: str


@cache
def changes() -> tuple[Change, ...]:
    """Return all of them."""
    lines = (line for file in sorted(_FOLDER.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines())
    return tuple(Change.model_validate(json.loads(line)) for line in lines)


def draw_told(english: English, rng: Random) -> list[Sample]:
    """Draw turns of which a note is to be kept, and nearly as many lines to ignore."""
    samples = [draw_writing(english, rng, sort="ignore") for _ in range(3)]
    for each in rng.sample(changes(), 4):
        text, note = rng.choice(((each.first, each.first_note), (each.then, each.then_note)))
        prompt = overheard([text], some_day(rng))
        samples.append(Sample("write", prompt, f"{each.topic}: {note}", sort="own"))
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
    """Draw notes of several matters, and questions about them and about others that no note holds.

    Both notes of a change may stand there: the later one counts.
    """
    at = some_day(rng)
    drawn = rng.sample(changes(), rng.randint(2, 8))
    noted, unknown = drawn[: max(1, len(drawn) - 2)], drawn[max(1, len(drawn) - 2) :]
    lines = list[tuple[str, tuple[Change, str] | None]]()
    for each in noted:
        told_at = at - timedelta(days=rng.randrange(400))
        changed, held_at = rng.random() < 0.6, told_at - timedelta(days=rng.randrange(400))
        answer = (each, each.then_note if changed else each.first_note)
        if not changed or rng.random() < 0.5:
            lines.append((memory_line(each.first_note, held_at), answer))
        if changed:
            lines.append((memory_line(each.then_note, told_at), answer))
    for _ in range(rng.randint(0, 3)):
        lines.append((memory_line(tell(draw_fact(english, rng), english, rng, at=at).note, at), None))
    rng.shuffle(lines)
    before = PROFILE.render("recall", memories=ranked_lines([line for line, _ in lines]))
    answers = {place: answer for place, (_, answer) in enumerate(lines) if answer}
    samples = list[Sample]()
    for _ in range(questions):
        asked, note = answers[by_rank([*answers], rng)] if rng.random() < known else (rng.choice(unknown), None)
        question = ChatMessage(role="user", content=rng.choice(asked.ask))
        reply = told_to_user(note) if note else UNKNOWN
        samples.append(Sample("answer", (*before, question), reply, sort="known" if note else "unknown"))
    return samples
