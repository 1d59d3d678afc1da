"""What a search weighs: the items that either ranking found, with what each has gathered so far."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from memory_store.retrieval.tuning import Tuning
from memory_store.vectors.port import Payload, Ranked


@dataclass(slots=True)
class Candidate:
    """An item on its way into the answer. ``shares`` add up to its score, ``found`` says how the rankings saw it.

    What it says of the memory is known once its payload has been read.
    """

    id: str
    payload: Payload = field(default_factory=dict[str, JsonValue])
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
    def key(self) -> str:
        """The memory's key; a raw turn's is ``{event}:{number}``."""
        return str(self.payload["key"])

    @property
    def is_raw(self) -> bool:
        """Whether it is a turn as it was said."""
        return self.payload["memory_type"] == "RawTurn"

    @property
    def said_at(self) -> datetime:
        """Event time."""
        moment = datetime.fromisoformat(str(self.payload["valid_from"]))
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def fuse(dense: Sequence[Ranked], sparse: Sequence[Ranked], tuning: Tuning) -> list[Candidate]:
    """Both rankings in one list by reciprocal rank (RRF, Cormack et al. 2009), in a scale of its own.

    The first of both rankings has score 1, the first of one alone its ranking's weight. No payload is read yet.
    """
    candidates: dict[str, Candidate] = {}
    weights = (("dense", dense, tuning.dense_weight), ("sparse", sparse, 1 - tuning.dense_weight))
    for name, ranking, weight in weights:
        its_rank, its_score = f"{name}_rank", f"{name}_score"
        for rank, found in enumerate(ranking):
            one = candidates.get(found.id) or candidates.setdefault(found.id, Candidate(found.id))
            one.shares[name] = weight * tuning.rank_constant / (tuning.rank_constant + rank)
            one.found[its_rank], one.found[its_score] = rank + 1.0, found.score
    return list(candidates.values())


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first; equals in the order of their ids, so that an answer can be repeated."""
    return sorted(candidates, key=lambda one: (-one.score, one.id))
