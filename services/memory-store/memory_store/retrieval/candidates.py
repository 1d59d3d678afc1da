"""Items on their way into the answer, with the shares that each has gathered so far, and the weights of the shares."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pydantic import TypeAdapter

from memloop.wire.feedback import Feedback
from memloop.wire.memory import NamedTime
from memory_store.vectors.port import Payload


@dataclass(frozen=True, slots=True)
class Tuning:
    """Weights of a search; 0 switches a part off.

    ``dense``: of the cosine. ``sparse``: of a BM25 score, which is 5 to 15 for a good match. ``beside`` and ``near``:
    the part of a turn's relevance that the turns one and two places away get. ``session``: the part of a session's
    best relevance that all of its turns get. ``speaker``: added to a turn whose speaker the question names; the name
    is then left out of both rankings. ``date``: added where the question names the time. ``asking``: the cost of a
    turn that ends with a question. ``helpful``: added to a memory that a client called helpful; ``outdated``: the cost
    of one that a client called outdated. One that a client called wrong is left out, whatever the weights.
    """

    dense: float = 1.0
    sparse: float = 0.03
    beside: float = 0.3
    near: float = 0.1
    session: float = 0.2
    speaker: float = 0.25
    date: float = 0.2
    asking: float = 0.1
    helpful: float = 0.05
    outdated: float = 0.3


PLAIN = Tuning(beside=0.0, near=0.0, session=0.0, speaker=0.0, date=0.0, asking=0.0, helpful=0.0, outdated=0.0)
"""The two rankings added up, and nothing else."""


_TIMES: Final = TypeAdapter(tuple[NamedTime, ...])
DECIMALS = 6
"""Of a score that count for the order: processors and vector stores differ beyond them."""


@dataclass(slots=True)
class Candidate:
    """An item with its payload. ``shares`` add up to its score; ``found`` holds its places in the rankings."""

    id: str
    payload: Payload
    shares: dict[str, float] = field(default_factory=dict[str, float])
    found: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def score(self) -> float:
        """The sum of the shares."""
        return sum(self.shares.values())

    @property
    def text(self) -> str:
        """The memory."""
        return str(self.payload["memory"])

    @property
    def place(self) -> int | None:
        """The place in its conversation; None for an item stored without one."""
        place = self.payload.get("place")
        return place if isinstance(place, int) else None

    @property
    def speaker(self) -> frozenset[str]:
        """The words of the speaker's name, folded."""
        words = self.payload.get("speaker")
        return frozenset(str(word) for word in words) if isinstance(words, list) else frozenset()

    @property
    def feedback(self) -> Feedback | None:
        """The verdict of a client, if there is one."""
        return feedback_in(self.payload)

    @property
    def times(self) -> tuple[NamedTime, ...]:
        """The times that the memory names."""
        return _TIMES.validate_python(self.payload.get("times", ()))

    @property
    def said_at(self) -> datetime:
        """Event time."""
        moment = datetime.fromisoformat(str(self.payload["valid_from"]))
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def feedback_in(payload: Payload) -> Feedback | None:
    """Returns the verdict that a stored memory carries."""
    stored = payload.get("feedback")
    return Feedback.model_validate(stored) if stored is not None else None


def is_wrong(payload: Payload) -> bool:
    """Returns whether a client called the memory wrong."""
    feedback = feedback_in(payload)
    return feedback is not None and feedback.verdict == "wrong"


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Returns the best first; equal scores fall by event time, the newest first, then by id.

    Scores are equal when they agree in six decimals, so that every vector store gives the same order.
    """
    return sorted(candidates, key=lambda one: (-round(one.score, DECIMALS), -one.said_at.timestamp(), one.id))
