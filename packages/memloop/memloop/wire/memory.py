"""Memory items, namespaces, and the bodies of the memory routes.

The gateway's public routes and the store's internal ones share these models. ``Namespace.tenant`` never comes
from a client: the gateway sets it from the key.
"""

import hashlib
import operator
from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, JsonValue, model_validator

from memloop.wire.base import Integral, Wire
from memloop.wire.errors import ErrorBody
from memloop.wire.feedback import Feedback
from memloop.wire.fields import Metadata, Moment, Name, Speaker, check_keys, joined, said, whole_name

MemoryType: TypeAlias = Literal["LongTermMemory", "UserMemory", "KeptTurn", "RawTurn"]
"""``KeptTurn``: a turn, or a piece of one, that is a memory because the memory writer gave no usable decision on it."""
Status: TypeAlias = Literal["activated", "archived", "deleted"]
Outcome: TypeAlias = Literal["inserted", "touched", "superseded"]

MAX_TEXT_CHARS = 32_768
MAX_ROLE_CHARS = 64
MAX_TOP_K = 100
MOST_TIMES = 4
"""Of a memory."""
MAX_BATCH_STATEMENTS = 2000
"""Texts of one batch, over all its adds."""
_ID = Field(min_length=1, max_length=256)
_OPTIONAL_ID = Field(default=None, min_length=1, max_length=256)


class Scope(Wire):
    """Selects one tenant's memories: those that match the ids that are set."""

    tenant: str = _ID
    user_id: str | None = _OPTIONAL_ID
    agent_id: str | None = _OPTIONAL_ID
    run_id: str | None = _OPTIONAL_ID


class Namespace(Scope):
    """Identifies a memory's owner. Searches match the ids that are set; a write has all known ids."""

    user_id: str = _ID  # pyright: ignore[reportIncompatibleVariableOverride] - narrower, and the model is frozen

    def lane(self) -> str:
        """The write lane's name: all writes of one tenant's user go one after another."""
        return f"{self.tenant}/{self.user_id}"

    def scopes(self) -> tuple[str, ...]:
        """The names of the up to four scopes that contain the namespace: the user, with agent, run or both.

        The last is the namespace's own. An erasure names one scope and covers all that lies in it.
        """
        agents, runs = dict.fromkeys((None, self.agent_id)), dict.fromkeys((None, self.run_id))
        return tuple(_scope(agent, run) for agent in agents for run in runs)


@lru_cache(maxsize=4096)
def _scope(agent_id: str | None, run_id: str | None) -> str:
    ids = ("" if part is None else f"={part}" for part in (agent_id, run_id))
    return hashlib.sha256(joined(*ids).encode()).hexdigest()[:32]


class UserFields(Wire):
    """The ids by which a client names a namespace; its tenant comes from the key."""

    user_id: Name
    agent_id: Name | None = None
    run_id: Name | None = None

    def namespace(self, tenant: str) -> Namespace:
        return Namespace(tenant=tenant, user_id=self.user_id, agent_id=self.agent_id, run_id=self.run_id)


def _whole(namespace: Namespace) -> Namespace:
    for name in (namespace.user_id, namespace.agent_id, namespace.run_id):
        whole_name(name or "")
    return namespace


WholeNamespace: TypeAlias = Annotated[Namespace, AfterValidator(_whole)]
"""A namespace to write to: no name of it has lost a character."""


def _is_none(value: object) -> bool:
    return value is None


class Source(Wire):
    """A turn that a memory came from; ``name`` is left out of the JSON where the speaker has none."""

    role: str = Field(max_length=MAX_ROLE_CHARS)
    content: str = Field(max_length=MAX_TEXT_CHARS)
    message_id: str | None = Field(default=None, max_length=256)
    timestamp: Moment | None = None
    name: Speaker = Field(default=None, exclude_if=_is_none)

    def said(self) -> str:
        """Return the text behind its speaker's name: what is stored, ranked and shown to the memory writer."""
        return said(self.name, self.content)

    def if_named(self) -> Self | None:
        """Return the turn; None where its speaker has no name."""
        return self if self.name else None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.said()) > MAX_TEXT_CHARS:
            raise ValueError(f"a message has at most {MAX_TEXT_CHARS} characters with its name")
        return self


def repeated_turn(memory: str, sources: Sequence[Source]) -> Source | None:
    """Return the only source of a memory if the memory repeats it and its speaker has a name."""
    turn = sources[0].if_named() if len(sources) == 1 else None
    return turn if turn and turn.said() == memory else None


class MemoryDraft(Wire):
    """A memory that is to be stored: what ``add_memory`` carries (MemReader card, tool definitions).

    ``source``: the turn that the draft repeats; it replaces the sources of the add.
    """

    key: str = Field(min_length=1, max_length=512)
    value: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    memory_type: MemoryType = "LongTermMemory"
    tags: tuple[str, ...] = Field(default=(), max_length=64)
    source: Source | None = Field(default=None, exclude_if=_is_none)


class NamedTime(Wire):
    """A time that a memory names, as days relative to the day on which it was said: ``last Friday``.

    ``text`` is as it was said; ``start`` and ``end`` are its first and last day.
    """

    text: str = Field(max_length=256)
    start: date
    end: date

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end < self.start:
            raise ValueError("a time ends before it starts")
        return self


class MemoryItem(Wire):
    """A stored memory.

    ``valid_from``/``valid_to`` are event time, ``created_at``/``updated_at`` ingest time; all UTC.
    """

    id: str
    memory: str
    key: str
    memory_type: MemoryType
    tags: tuple[str, ...] = ()
    user_id: str
    agent_id: str | None = None
    run_id: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    version: int = 1
    status: Status = "activated"
    supersedes: str | None = None
    valid_from: datetime
    valid_to: datetime | None = None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    sources: tuple[Source, ...] = ()
    hash: str
    times: tuple[NamedTime, ...] = Field(default=(), max_length=MOST_TIMES, exclude_if=operator.not_)
    """The times that the text names, else its only source's. Left out of the JSON where there is none."""
    feedback: Feedback | None = Field(default=None, exclude_if=_is_none)
    """Left out of the JSON where no verdict was given."""

    def namespace(self, tenant: str) -> Namespace:
        return Namespace(tenant=tenant, user_id=self.user_id, agent_id=self.agent_id, run_id=self.run_id)


class StoreAdd(Wire):
    """``POST /v1/items`` of the store: drafts resolved against their neighbours, in one lane.

    ``fencing_token`` is the lane's; a token older than the newest that the store has seen is refused (409).
    ``event_id`` makes a replay harmless. ``ends`` are the drafts' own: the earlier of each and
    ``expires_at`` counts.
    """

    namespace: WholeNamespace
    drafts: tuple[MemoryDraft, ...] = Field(min_length=1, max_length=100)
    sources: tuple[Source, ...] = ()
    metadata: Metadata = Field(default_factory=dict[str, JsonValue])
    timestamp: Moment | None = None
    expires_at: Moment | None = None
    ends: tuple[Moment | None, ...] = Field(default=(), max_length=100)
    event_id: str | None = None
    fencing_token: int | None = None


class Written(Wire):
    """What became of one draft."""

    outcome: Outcome
    item: MemoryItem


class StoreAddResult(Wire):
    """The outcomes, in the order of the drafts."""

    results: tuple[Written, ...]


def _few_drafts(adds: tuple[StoreAdd, ...]) -> tuple[StoreAdd, ...]:
    if sum(len(add.drafts) for add in adds) > MAX_BATCH_STATEMENTS:
        raise ValueError(f"a batch has at most {MAX_BATCH_STATEMENTS} drafts in all its adds")
    return adds


class StoreBatch(Wire):
    """``POST /v1/items/batch`` of the store: adds of any namespaces, embedded together and stored in one operation.

    ``began`` is the newest fencing token when the request was accepted: adds of users erased since are refused (409).
    """

    began: int | None = None

    adds: Annotated[tuple[StoreAdd, ...], AfterValidator(_few_drafts)] = Field(
        min_length=1, max_length=MAX_BATCH_STATEMENTS
    )


class BatchOutcome(Wire):
    """What became of one add of a batch: its memories, or why it was refused."""

    memories: tuple[Written, ...] = ()
    error: ErrorBody | None = None


class BatchResult(Wire):
    """The outcomes, in the order of the adds."""

    results: tuple[BatchOutcome, ...]


class SearchOptions(Wire):
    """What a search takes beside its namespace."""

    query: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)
    top_k: Annotated[int, Integral] = Field(default=10, ge=1, le=MAX_TOP_K)
    threshold: float | None = Field(default=None, ge=0.0)
    as_of: Moment | None = None
    latest_only: bool = True
    include_raw: bool = False
    filters: dict[str, JsonValue] | None = None
    max_tokens: Annotated[int, Field(ge=1), Integral] | None = None
    explain: bool = False


class StoreSearch(SearchOptions):
    """``POST /v1/items/search`` of the store. ``include_buffered`` adds the user's buffered turns as ``pending``."""

    namespace: Scope
    include_buffered: bool = False


class SearchHit(Wire):
    """A found item. ``score`` is a cosine plus boosts, higher is better; the breakdown names its parts."""

    item: MemoryItem
    score: float
    score_breakdown: dict[str, float] = Field(default_factory=dict[str, float])


class PendingTurn(Wire):
    """A turn that no decision was made on yet: it waits in the queue, is being written, or waits for more context.

    ``event_id`` is its write's; of a buffered turn, the last write's that left it in the buffer.
    """

    pending: Literal[True] = True
    status: Literal["queued", "in_progress", "buffered"]
    event_id: str | None = None
    role: str
    content: str
    timestamp: datetime | None = None
    user_id: str
    agent_id: str | None = None
    run_id: str | None = None
    name: Speaker = Field(default=None, exclude_if=_is_none)

    def said(self) -> str:
        return said(self.name, self.content)


class SearchResult(Wire):
    """Hits, best first. ``pending`` are turns that may become memories, those with most words of the query first.

    ``pending_complete`` is false when such turns may be missing: the queue did not answer in time, or the search has
    other conditions than ids. ``degraded`` is true when the embedding model failed, so that words alone decided, or the
    reranking model did.
    """

    results: tuple[SearchHit, ...]
    pending: tuple[PendingTurn, ...] = ()
    pending_complete: bool = True
    degraded: bool = False


class ItemPage(Wire):
    """A page of a namespace's items; ``next_cursor`` is None on the last."""

    items: tuple[MemoryItem, ...]
    next_cursor: str | None = None


class ItemPatch(Wire):
    """``PATCH``: the fields that an edit may change; the edit is a new version."""

    memory: str | None = Field(default=None, min_length=1, max_length=MAX_TEXT_CHARS)
    metadata: Annotated[Metadata, AfterValidator(check_keys)] | None = None
    tags: tuple[str, ...] | None = None
    expires_at: Moment | None = None


class Erased(Wire):
    """How much a namespace's erasure deleted, by kind.

    ``vectors`` are memories and raw turns in all versions, ``queue`` the writes that were still waiting, ``events``
    those of all writes. ``replayed`` are answers kept for an ``Idempotency-Key``.

    ``dry_run``: nothing was deleted, the counts are of what an erasure would delete. Left out where it is false.
    """

    vectors: int
    buffers: int
    queue: int = 0
    events: int = 0
    long_reads: int = 0
    traces: int = 0
    files: int = 0
    responses: int = 0
    conversations: int = 0
    vector_stores: int = 0
    replayed: int = 0
    dry_run: bool = Field(default=False, exclude_if=operator.not_)

    @property
    def derived(self) -> int:
        """The records of other kinds than memories and their writes."""
        reads = self.long_reads + self.traces + self.files + self.vector_stores
        return reads + self.responses + self.conversations + self.replayed


class GivenToMemories(Wire):
    """What a write gives to each memory that its turns become."""

    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue], exclude_if=operator.not_)
    expires_at: datetime | None = Field(default=None, exclude_if=_is_none)


class Buffer(GivenToMemories):
    """Turns that wait for more context, oldest first. ``event_id`` is the last write that left them here.

    ``metadata`` and ``expires_at`` are what that write gave to the memories that the turns become.
    """

    namespace: Namespace
    turns: tuple[Source, ...]
    reason: str = ""
    event_id: str | None = None
    updated_at: datetime | None = None


class BufferPage(Wire):
    """The buffers of a tenant or a user."""

    buffers: tuple[Buffer, ...]


class Usage(Wire):
    """Tokens and calls that a loop spent at the engine."""

    input_tokens: int = 0
    output_tokens: int = 0
    llm_calls: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            llm_calls=self.llm_calls + other.llm_calls,
        )
