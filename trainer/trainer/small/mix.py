"""The stream of training: samples in the shares of a recipe, in groups that share the start of their prompts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from random import Random
from typing import Final

from memloop.loops.rendering import memory_line, ranked_lines
from memloop.wire.chat import ChatMessage
from trainer.small.changes import changes, draw_asked, draw_changed, draw_told
from trainer.small.crowd import draw_reading_of_crowd
from trainer.small.facts import draw_fact, draw_person, tell
from trainer.small.kinds import English
from trainer.small.persons import told_to_user
from trainer.small.reading import draw_reading, draw_reading_of_novel
from trainer.small.relating import draw_answers, draw_relating
from trainer.small.sample import PROFILE, Sample, some_day
from trainer.small.writing import draw_writing, spoken

SHARES: Final[dict[str, float]] = {"write": 0.36, "relate": 0.11, "answer": 0.36, "read": 0.15, "chat": 0.02}
"""Share of the tokens of each task; ``read`` counts a text's answer too."""
_KNOWN: Final = 0.66
"""Share of the questions that a note answers: with fewer of the others the model answers from any note."""
_ASKED: Final = 8
"""Questions over the same notes: they share the tokens of these."""
_TELLING: Final = 0.5
"""Share of the chat in which the user tells a fact: to that the base replies that it cannot help, or invents one."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the samples of a task come from.

    ``by_hand`` is the share of all but reading over what people typed, not the generator; ``of_novels``
    and ``of_crowds`` are the shares of sections about what the novel itself tells, and about many people at once.
    ``concluded`` is the share of the sections whose questions are answered from the memory, not read, since rewriting
    is the harder part; ``questions`` over one section share its tokens.
    """

    by_hand: float = 0.4
    of_novels: float = 0.5
    of_crowds: float = 0.0
    concluded: float = 0.15
    questions: int = 5


def draw_group(task: str, english: English, rng: Random, sources: Sources) -> list[Sample]:
    """Draw samples of one task that begin alike."""
    by_hand = rng.random() < sources.by_hand
    match task:
        case "write":
            return draw_told(english, rng) if by_hand else [draw_writing(english, rng) for _ in range(6)]
        case "relate":
            return draw_changed(english, rng) if by_hand else draw_relating(english, rng)
        case "answer":
            drawn = (
                draw_asked(english, rng, known=_KNOWN, questions=_ASKED)
                if by_hand
                else draw_answers(english, rng, most_notes=rng.choice((3, 6, 10)), known=_KNOWN, questions=_ASKED)
            )
            return [*{sample.messages[-1].text(): sample for sample in drawn}.values()]  # each question once
        case "read":
            others = 1 - sources.of_novels - sources.of_crowds
            draws = (draw_reading_of_novel, draw_reading_of_crowd, draw_reading)
            draw = rng.choices(draws, (sources.of_novels, sources.of_crowds, others))[0]
            turns = draw(english, rng, words=rng.choice(english.section_words), questions=sources.questions)
            read, concluded = turns[: len(turns) // 2], turns[len(turns) // 2 :]
            return concluded if rng.random() < sources.concluded else read
        case "chat":
            return [_chat(english, rng, by_hand=by_hand)]
        case _:
            raise ValueError(f"there is no task {task!r}")


def stream(
    english: English, seed: int | str, weights: dict[str, float], sources: Sources, start: int = 0
) -> Iterator[list[Sample]]:
    """Yield groups without end from the group ``start`` on; each is drawn from its own number, so a run resumes.

    ``weights`` are the shares of groups, not of tokens.
    """
    tasks, shares = list(weights), list(weights.values())
    for number in count(start):
        rng = Random(f"{seed}/{number}")
        yield draw_group(rng.choices(tasks, shares)[0], english, rng, sources)


def _chat(english: English, rng: Random, *, by_hand: bool) -> Sample:
    """Draw a turn of general chat with the base's own reply, or one that tells a fact with a reply that repeats it.

    Half of them stand below notes that do not matter to them.
    """
    at = some_day(rng)
    if rng.random() < _TELLING:
        prompt, notes = _told(english, rng, at, by_hand=by_hand)
        heard = " ".join(map(told_to_user, notes))
        reply = f"Got it: {heard[:1].lower() if heard.startswith('You') else heard[:1]}{heard[1:]}"
    else:
        prompt, reply = rng.choice(english.replies)
    before: tuple[ChatMessage, ...] = ()
    if rng.random() < 0.5:
        notes = [tell(draw_fact(english, rng), english, rng, at=at).note for _ in range(rng.randint(1, 5))]
        before = PROFILE.render("recall", memories=ranked_lines([memory_line(note, at) for note in notes]))
    return Sample("chat", (*before, ChatMessage(role="user", content=prompt)), reply)


def _told(english: English, rng: Random, at: datetime, *, by_hand: bool) -> tuple[str, list[str]]:
    """Draw what the user tells, as somebody typed it or by the generator, and the notes of it."""
    if by_hand:
        typed = rng.choice(rng.choice(changes()).turns())
        return typed.said, [note for _, note in typed.notes]
    of = draw_person(english, rng) if rng.random() < 0.4 else None
    told = [tell(draw_fact(english, rng, of=of), english, rng, at=at) for _ in range(rng.choice((1, 1, 1, 2)))]
    return spoken(told, english, rng), [each.note for each in told]
