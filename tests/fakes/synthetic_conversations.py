"""Writes small made-up files in each format, from the dialogue generator; the same seed gives the same file."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from evaluation.retrieval import conversations as made_up
from tests.fakes.dialogue_files import write
from trainer.data.dialogues.dialogue import ASSISTANT, Conversation, Point, Question, Session, Turn
from trainer.data.dialogues.formats import Format

_LOCOMO_CATEGORIES: Mapping[made_up.Kind, str] = {"temporal": "temporal", "multi": "multi-hop"}


def write_synthetic(path: Path, format_: Format, *, seed: int = 0, sessions: int | None = None) -> None:
    """Write a file with one made-up conversation, or with its first ``sessions`` only."""
    write([synthetic(format_, seed=seed, sessions=sessions)], path, format_)


def synthetic(format_: Format, *, seed: int = 0, sessions: int | None = None) -> Conversation:
    """Build the conversation as the format's loader would, except that LongMemEval makes one of each question."""
    made = made_up.conversation(seed)
    spoken = made.sessions[:sessions]
    names = {turn.id: _id(place, at, format_) for place, turns in enumerate(spoken) for at, turn in enumerate(turns)}
    asked = [question for question in made.questions if all(each in names for each in question.evidence)]
    held = tuple(_session(place, turns, made, asked, format_, names) for place, turns in enumerate(spoken))
    questions = tuple(
        Question(
            id="",
            text=question.text,
            answer=question.answer,
            categories=(_LOCOMO_CATEGORIES.get(question.kind, "single-hop") if format_ == "locomo" else question.kind,),
            after_sessions=max(_place(each) for each in question.evidence) if format_ == "halumem" else len(held),
            evidence=()
            if format_ == "halumem"
            else tuple(each for turn, each in names.items() if turn in question.evidence),
            asked_at=made_up.ASKED_AT if format_ == "longmemeval" else None,
        )
        for question in asked
    )
    return Conversation(f"{format_}-{seed}", held, _numbered(questions, format_, seed))


def _place(turn_id: str) -> int:
    """Return the session of a generated turn, from 1."""
    return int(turn_id.partition(":")[0])


def _id(place: int, at: int, format_: Format) -> str:
    return f"D{place + 1}:{at + 1}" if format_ == "locomo" else f"{place}:{at}"


def _session(
    place: int,
    turns: tuple[Turn, ...],
    made: made_up.Conversation,
    asked: list[made_up.Question],
    format_: Format,
    names: Mapping[str, str],
) -> Session:
    """Build a session; the first speaker becomes the user if the format has only users and assistants."""
    said = tuple(
        Turn(names[t.id], t.speaker if format_ == "locomo" else _role(t, made), _words(t, format_), t.said_at)
        for t in turns
    )
    name = str(place + 1) if format_ == "locomo" else str(place)
    return Session(name, turns[0].said_at, said, _points(turns, asked) if format_ == "halumem" else ())


def _role(turn: Turn, made: made_up.Conversation) -> str:
    return "user" if turn.speaker == made.speakers[0] else ASSISTANT


def _words(turn: Turn, format_: Format) -> str:
    return turn.text if format_ == "locomo" else f"{turn.speaker} says: {turn.text}"


def _points(turns: tuple[Turn, ...], asked: list[made_up.Question]) -> tuple[Point, ...]:
    """Build a point for each answered question, and one that must not be remembered.

    The evidence of a question about a change replaces something.
    """
    kinds = {turn_id: question.kind for question in asked for turn_id in question.evidence}
    told = [turn for turn in turns if turn.id in kinds]
    wanted = tuple(
        Point(
            id=str(number),
            text=f"{turn.speaker}: {turn.text}",
            importance=0.9 if kinds[turn.id] == "update" else 0.5,
            is_update=kinds[turn.id] == "update",
            type="event",
        )
        for number, turn in enumerate(told, 1)
    )
    return (*wanted, Point("0", f"{turns[0].speaker}: I keep a lion.", type="persona", interferes=True))


def _numbered(questions: tuple[Question, ...], format_: Format, seed: int) -> tuple[Question, ...]:
    """Assign IDs as the format's loader does, and sort the questions in its order."""
    if format_ == "halumem":
        by_session = sorted(questions, key=lambda question: question.after_sessions)
        counts: dict[int, int] = {}
        return tuple(replace(each, id=f"{each.after_sessions - 1}.{_next(counts, each)}") for each in by_session)
    prefix = "q" if format_ == "locomo" else f"seed{seed}-q"
    return tuple(replace(question, id=f"{prefix}{number}") for number, question in enumerate(questions))


def _next(counts: dict[int, int], question: Question) -> int:
    number = counts.get(question.after_sessions, 0)
    counts[question.after_sessions] = number + 1
    return number
