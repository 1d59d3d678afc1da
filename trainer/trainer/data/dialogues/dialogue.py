"""The one shape that every data set's conversations are read into."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. ``id`` is one of its conversation's alone; ``speaker`` is a name, or ``user`` and ``assistant``."""

    id: str
    speaker: str
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Point:
    """What a memory should have kept of a session (HaluMem). ``replaces`` are older memories that it corrects."""

    id: str
    text: str
    importance: float = 1.0
    is_update: bool = False
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """Turns of one sitting; ``points`` is empty where the data set has none."""

    id: str
    began_at: datetime
    turns: tuple[Turn, ...]
    points: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question, asked when the sessions before ``after_sessions`` are over. ``evidence``: ids of turns."""

    id: str
    text: str
    answer: str
    category: str
    after_sessions: int
    evidence: tuple[str, ...] = ()
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Sessions in time order, and what is asked about them."""

    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    @property
    def turns(self) -> Iterator[Turn]:
        """All of them."""
        return (turn for session in self.sessions for turn in session.turns)

    def asked_after(self, sessions: int) -> tuple[Question, ...]:
        """The questions that are due when so many sessions are over."""
        return tuple(question for question in self.questions if question.after_sessions == sessions)

    def asked_at(self, question: Question) -> datetime:
        """When it is asked: the data set's word, or the beginning of the last session that is over by then."""
        over = max(question.after_sessions, 1)
        return question.asked_at or self.sessions[over - 1].began_at
