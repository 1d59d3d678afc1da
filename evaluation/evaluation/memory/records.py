"""Records of the pieces of an evaluation."""

from collections.abc import Hashable
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AliasChoices, BeforeValidator, Field, TypeAdapter

Row: TypeAlias = Literal["ours", "raw", "full", "off"]
IN_MEMORY: Final[tuple[Row, ...]] = ("ours", "raw")
"""The rows that a gateway's memory answers."""
Verdict: TypeAlias = Literal["correct", "wrong", "missed", "other"]
"""``other`` is a state of an update that HaluMem's own judge may give; it counts in no share."""
Grade: TypeAlias = Literal["full", "half", "missed"]
Check: TypeAlias = Literal["full target", "half target", "missed target", "full other", "half other", "missed other"]
"""How far the dialogue bears out a memory, and whether the memory is about one of the expected points."""


def _of_older_file(categories: object) -> object:
    return categories.split(" + ") if isinstance(categories, str) else categories


Categories: TypeAlias = Annotated[
    tuple[str, ...],
    BeforeValidator(_of_older_file),
    Field(validation_alias=AliasChoices("categories", "category")),
]
"""The categories of a question; an unanswerable one of LongMemEval is of its type and of ``abstention``.

Older files have one text, ``category``, with several joined by `` + ``.
"""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens that an endpoint counted."""

    input: int = 0
    output: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.input + other.input, self.output + other.output)

    @property
    def total(self) -> int:
        """Sum prompt and completion tokens."""
        return self.input + self.output


NO_TOKENS = Tokens()


@dataclass(frozen=True, slots=True)
class Recalled:
    """Recall of a question's evidence, as turns and as sessions, among the first k results; k is a string key."""

    conversation: str
    question: str
    categories: Categories
    turns: dict[str, float]
    sessions: dict[str, float]
    kind: Literal["recall"] = "recall"


@dataclass(frozen=True, slots=True)
class Ingested:
    """One session written to a memory. ``memories`` are the extracted ones; ``error`` is the error of its writes.

    ``calls`` are the writer's.
    """

    row: Row
    conversation: str
    session: str
    seconds: float
    tokens: Tokens = NO_TOKENS
    memories: tuple[str, ...] = ()
    error: str | None = None
    calls: int = 0
    kind: Literal["ingest"] = "ingest"


@dataclass(frozen=True, slots=True)
class Answered:
    """One answered and judged question. ``verdict`` None: the judge's reply was unreadable and counts as wrong.

    Where an answer is judged more than once, ``judgements`` are all verdicts and ``verdict`` the first.
    ``context_tokens`` are those of the memories shown, where the protocol counts them.
    """

    row: Row
    conversation: str
    question: str
    seed: int
    categories: Categories
    golds: tuple[str, ...]
    answer: str = ""
    verdict: Verdict | None = None
    error: str | None = None
    tokens: Tokens = NO_TOKENS
    judge_tokens: Tokens = NO_TOKENS
    search_s: float = 0.0
    answer_s: float = 0.0
    judgements: tuple[Verdict | None, ...] = ()
    context_tokens: int | None = None
    kind: Literal["answer"] = "answer"

    @property
    def verdicts(self) -> tuple[Verdict | None, ...]:
        """Return every verdict on the answer."""
        return self.judgements or (self.verdict,)

    @property
    def share_right(self) -> float:
        """Return the share of the verdicts that call it correct; 0 after an error."""
        return fmean(verdict == "correct" for verdict in self.verdicts) if self.error is None else 0.0


@dataclass(frozen=True, slots=True)
class Graded:
    """One memory point (HaluMem): how much of it was extracted or, for an update, the memory's current state.

    ``as_update``: it was to be judged as an update, also where that failed; False in older files.
    ``interferes``: the point was only suggested and must not be remembered. ``type``: event, persona, relationship.
    """

    row: Row
    conversation: str
    session: str
    point: str
    importance: float
    grade: Grade | None = None
    is_update: bool = False
    update: Verdict | None = None
    error: str | None = None
    judge_tokens: Tokens = NO_TOKENS
    type: str = ""
    interferes: bool = False
    as_update: bool = False
    kind: Literal["point"] = "point"

    @property
    def counts_as_update(self) -> bool:
        """Whether it is a point of the updates, else of the extraction."""
        return self.as_update or self.update is not None


@dataclass(frozen=True, slots=True)
class Checked:
    """One extracted memory checked against its session (HaluMem). ``place`` is its position among the session's."""

    row: Row
    conversation: str
    session: str
    place: int
    check: Check | None = None
    error: str | None = None
    judge_tokens: Tokens = NO_TOKENS
    kind: Literal["memory"] = "memory"


AnyEntry: TypeAlias = Recalled | Ingested | Answered | Graded | Checked


ENTRIES: TypeAdapter[AnyEntry] = TypeAdapter(Annotated[AnyEntry, Field(discriminator="kind")])


def key_of(entry: AnyEntry) -> Hashable:
    """Return the key that identifies an entry."""
    match entry:
        case Recalled():
            return entry.kind, entry.conversation, entry.question
        case Ingested():
            return entry.kind, entry.row, entry.conversation, entry.session
        case Answered():
            return entry.kind, entry.row, entry.conversation, entry.question, entry.seed
        case Graded():
            return entry.kind, entry.row, entry.conversation, entry.session, entry.point
        case Checked():
            return entry.kind, entry.row, entry.conversation, entry.session, entry.place
