"""The common shape of every data set's conversations."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. ``id`` is unique in its conversation; ``speaker`` is a name, or ``user`` and ``assistant``."""

    id: str
    speaker: str
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Point:
    """A memory that a session should leave (HaluMem). ``replaces`` are older memories that it corrects.

    ``interferes``: the session only suggests it, and it must not be remembered. ``type`` is the data set's.
    """

    id: str
    text: str
    importance: float = 1.0
    is_update: bool = False
    replaces: tuple[str, ...] = ()
    type: str = ""
    interferes: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """Turns of one sitting; ``points`` is empty if the data set has none."""

    id: str
    began_at: datetime
    turns: tuple[Turn, ...]
    points: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question, asked after the first ``after_sessions`` sessions. ``evidence``: IDs of turns.

    ``facts`` are the memories that its answer rests on, as the data has them (HaluMem).
    """

    id: str
    text: str
    answer: str
    categories: tuple[str, ...]
    after_sessions: int
    evidence: tuple[str, ...] = ()
    asked_at: datetime | None = None
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """Sessions in time order, and the questions about them."""

    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    @property
    def turns(self) -> Iterator[Turn]:
        """Yield all turns."""
        return (turn for session in self.sessions for turn in session.turns)

    def asked_after(self, sessions: int) -> tuple[Question, ...]:
        """Return the questions to ask after this number of sessions."""
        return tuple(question for question in self.questions if question.after_sessions == sessions)

    def asked_at(self, question: Question) -> datetime:
        """Return the question's date: the data set's, or the start of the last session before it."""
        over = max(question.after_sessions, 1)
        return question.asked_at or self.sessions[over - 1].began_at
