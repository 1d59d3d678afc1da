"""Writes conversations as LoCoMo, LongMemEval and HaluMem publish theirs."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import orjson
from pydantic import JsonValue

from trainer.data.dialogues.dialogue import Conversation, Point, Question
from trainer.data.dialogues.formats import Format
from trainer.data.dialogues.locomo import CATEGORIES


def write(talks: Sequence[Conversation], path: Path, format_: Format) -> None:
    """Write the conversations as a file that the format's reader loads unchanged."""
    written: list[dict[str, JsonValue]] = []
    for talk in talks:
        if format_ == "longmemeval":
            written += _longmemeval(talk)
        else:
            written.append(_locomo(talk) if format_ == "locomo" else _halumem(talk))
    if format_ == "halumem":
        path.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in written))
    else:
        path.write_bytes(orjson.dumps(written, option=orjson.OPT_INDENT_2))


def _locomo(talk: Conversation) -> dict[str, JsonValue]:
    numbers = {name: number for number, name in CATEGORIES.items()}
    fields: dict[str, JsonValue] = {}
    for session in talk.sessions:
        fields[f"session_{session.id}_date_time"] = _locomo_time(session.began_at)
        fields[f"session_{session.id}"] = [
            {"speaker": t.speaker, "dia_id": t.id, "text": t.text} for t in session.turns
        ]
    qa: list[JsonValue] = [
        {"question": q.text, "answer": q.answer, "evidence": list(q.evidence), "category": numbers[q.categories[0]]}
        for q in talk.questions
    ]
    return {"sample_id": talk.id, "conversation": fields, "qa": qa}


def _locomo_time(moment: datetime) -> str:
    half = f"{moment:%p}".lower()
    return f"{moment:%I:%M} {half} on {moment.day} {moment:%B}, {moment.year:04}"


def _longmemeval(talk: Conversation) -> list[dict[str, JsonValue]]:
    return [_longmemeval_entry(talk, question) for question in talk.questions]


def _longmemeval_entry(talk: Conversation, question: Question) -> dict[str, JsonValue]:
    said = [
        [
            {"role": t.speaker, "content": t.text} | ({"has_answer": True} if t.id in question.evidence else {})
            for t in session.turns
        ]
        for session in talk.sessions
    ]
    held = [s.id for s in talk.sessions if any(turn.id in question.evidence for turn in s.turns)]
    return {
        "question_id": question.id,
        "question": question.text,
        "question_type": question.categories[0],
        "question_date": _longmemeval_time(talk.asked_at(question)),
        "answer": question.answer,
        "answer_session_ids": [f"s{name}" for name in held],
        "haystack_sessions": said,  # pyright: ignore[reportReturnType] - list is invariant
        "haystack_dates": [_longmemeval_time(session.began_at) for session in talk.sessions],
        "haystack_session_ids": [f"s{session.id}" for session in talk.sessions],
    }


def _longmemeval_time(moment: datetime) -> str:
    return f"{moment.year:04}/{moment:%m/%d (%a) %H:%M}"


def _halumem(talk: Conversation) -> dict[str, JsonValue]:
    sessions: list[JsonValue] = [_halumem_session(talk, place) for place in range(len(talk.sessions))]
    return {"uuid": talk.id, "persona_info": "", "sessions": sessions}


def _halumem_session(talk: Conversation, place: int) -> dict[str, JsonValue]:
    session = talk.sessions[place]
    return {
        "start_time": _halumem_time(session.began_at),
        "dialogue": [
            {"role": t.speaker, "content": t.text, "timestamp": _halumem_time(t.said_at), "dialogue_turn": number}
            for number, t in enumerate(session.turns)
        ],
        "memory_points": [_halumem_point(point) for point in session.points],
        "questions": [
            {
                "question": q.text,
                "answer": q.answer,
                "question_type": q.categories[0],
                "evidence": [],
                "difficulty": "easy",
            }
            for q in talk.asked_after(place + 1)
        ],
    }


def _halumem_point(point: Point) -> dict[str, JsonValue]:
    return {
        "index": point.id,
        "memory_content": point.text,
        "memory_type": f"{point.type.title()} Memory" if point.type else "",
        "memory_source": "interference" if point.interferes else "primary",
        "is_update": str(point.is_update),
        "original_memories": list(point.replaces),
        "importance": point.importance,
    }


def _halumem_time(moment: datetime) -> str:
    return f"{moment:%b %d}, {moment.year:04}, {moment:%H:%M:%S}"
