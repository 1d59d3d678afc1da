"""HaluMem: users with dialogue sessions, the memory points that each session should leave, and questions after it.

Source: HaluMem (arXiv 2511.03506), its data files; a point whose source is ``interference`` must not be remembered.
"""

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from trainer.data.dialogues.dialogue import Conversation, Point, Question, Session, Turn

_INTERFERENCE = "interference"
_DATES = ("%b %d, %Y, %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d")


class _Said(BaseModel):
    role: str
    content: str
    timestamp: str | None = None


class _Point(BaseModel):
    index: int | str
    memory_content: str
    memory_type: str = ""
    memory_source: str = ""
    is_update: str | bool = "False"
    original_memories: tuple[str, ...] = ()
    importance: float = Field(default=1.0, ge=0)


class _Evidence(BaseModel):
    memory_content: str = ""


class _Asked(BaseModel):
    question: str
    evidence: tuple[_Evidence, ...] = ()
    answer: str | int | float
    question_type: str = "question"


class _Sitting(BaseModel):
    dialogue: tuple[_Said, ...]
    memory_points: tuple[_Point, ...] = ()
    questions: tuple[_Asked, ...] = ()
    start_time: str | None = None
    is_generated_qa_session: bool = False
    """The session is there to be remembered; nothing about it is judged."""


class _User(BaseModel):
    uuid: str
    sessions: tuple[_Sitting, ...]


def conversation(row: object) -> Conversation:
    """Parse one user. A question follows its session; its evidence is memories, not turns. Raises ValueError."""
    user = _User.model_validate(row)
    sessions = tuple(_session(place, sitting) for place, sitting in enumerate(user.sessions))
    questions = tuple(
        Question(
            f"{place}.{number}",
            asked.question,
            str(asked.answer),
            (asked.question_type,),
            place + 1,
            facts=tuple(each.memory_content for each in asked.evidence if each.memory_content),
        )
        for place, sitting in enumerate(user.sessions)
        if not sitting.is_generated_qa_session
        for number, asked in enumerate(sitting.questions)
    )
    return Conversation(user.uuid, sessions, questions)


def _session(place: int, sitting: _Sitting) -> Session:
    began_at = _began(place, sitting)
    turns = tuple(
        Turn(f"{place}:{number}", said.role, said.content, _moment(said.timestamp) if said.timestamp else began_at)
        for number, said in enumerate(sitting.dialogue)
    )
    points = () if sitting.is_generated_qa_session else tuple(map(_point, sitting.memory_points))
    return Session(str(place), began_at, turns, points)


def _began(place: int, sitting: _Sitting) -> datetime:
    told = sitting.start_time or next((said.timestamp for said in sitting.dialogue if said.timestamp), None)
    if told is None:
        raise ValueError(f"session {place} has no time")
    return _moment(told)


def _point(point: _Point) -> Point:
    is_update = str(point.is_update).strip().lower() == "true"
    return Point(
        str(point.index),
        point.memory_content,
        point.importance,
        is_update,
        point.original_memories,
        type=point.memory_type.lower().removesuffix(" memory"),
        interferes=point.memory_source == _INTERFERENCE,
    )


def _moment(told: str) -> datetime:
    for form in _DATES:
        try:
            return datetime.strptime(told.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"no known form of a time: {told[:40]!r}")
