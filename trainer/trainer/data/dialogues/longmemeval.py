"""LongMemEval: one question with a haystack of sessions per entry.

Source: Wu et al., "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory" (arXiv 2410.10813).
"""

import re
from datetime import UTC, datetime

from pydantic import BaseModel, model_validator

from trainer.data.dialogues.dialogue import Conversation, Question, Session, Turn

ABSTENTION = "_abs"
"""The ID suffix of a question that the haystack does not answer."""
_WEEKDAY = re.compile(r"\s*\([A-Za-z]+\)")
_DATE = "%Y/%m/%d %H:%M"


class _Turn(BaseModel):
    role: str
    content: str
    has_answer: bool | None = None


class _Entry(BaseModel):
    question_id: str
    question: str
    question_type: str
    question_date: str
    answer: str | int | float
    answer_session_ids: tuple[str, ...] = ()
    haystack_sessions: tuple[tuple[_Turn, ...], ...]
    haystack_dates: tuple[str, ...]
    haystack_session_ids: tuple[str, ...]

    @model_validator(mode="after")
    def _of_one_length(self) -> "_Entry":
        if not len(self.haystack_sessions) == len(self.haystack_dates) == len(self.haystack_session_ids):
            raise ValueError("haystack_sessions, haystack_dates and haystack_session_ids differ in length")
        return self


def conversation(row: object) -> Conversation:
    """Parse one entry: its sessions by date. Evidence is the turns that hold the answer, or all of the answer's
    sessions.

    A turn's ID combines its session's position in the file and its own in the session. Raises ValueError.
    """
    entry = _Entry.model_validate(row)
    sessions = sorted((_session(place, entry) for place in range(len(entry.haystack_sessions))), key=_began)
    abstains = entry.question_id.endswith(ABSTENTION)
    question = Question(
        id=entry.question_id,
        text=entry.question,
        answer=str(entry.answer),
        categories=(entry.question_type, "abstention") if abstains else (entry.question_type,),
        after_sessions=len(sessions),
        evidence=() if abstains else _evidence(entry),
        asked_at=_moment(entry.question_date),
    )
    return Conversation(entry.question_id, tuple(sessions), (question,))


def _began(session: Session) -> datetime:
    return session.began_at


def _session(place: int, entry: _Entry) -> Session:
    began_at = _moment(entry.haystack_dates[place])
    turns = tuple(
        Turn(f"{place}:{number}", turn.role, turn.content, began_at)
        for number, turn in enumerate(entry.haystack_sessions[place])
    )
    return Session(str(place), began_at, turns)


def _evidence(entry: _Entry) -> tuple[str, ...]:
    of_answer = [place for place, name in enumerate(entry.haystack_session_ids) if name in entry.answer_session_ids]
    turns = [(f"{at}:{n}", turn) for at in of_answer for n, turn in enumerate(entry.haystack_sessions[at])]
    return tuple(name for name, turn in turns if turn.has_answer) or tuple(name for name, _ in turns)


def _moment(told: str) -> datetime:
    return datetime.strptime(_WEEKDAY.sub("", told), _DATE).replace(tzinfo=UTC)
