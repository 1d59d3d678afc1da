"""Derives an add's statements: its drafts, each with its fact and its time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest

from pydantic import JsonValue

from memloop.wire.memory import MemoryDraft, NamedTime, Namespace, Source, StoreAdd
from memory_store.items.identity import chain_id, content_hash, draft_digest, raw_turn_id
from memory_store.times import times_of
from memory_store.vectors.filters import utc


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """``raw_turn_life``: how long a raw turn is kept after it was written.

    ``near_duplicate_similarity``: cosine from which a memory under another key counts as the same statement, None
    for never. Measured with all-MiniLM-L6-v2: "Tom has 2 cats" and "Tom has 3 cats" are 0.98 alike, "Bob is (not)
    vegetarian" 0.97, true paraphrases 0.93 to 0.98. No threshold parts them, so the rule is off by default, and with
    it on numbers and negations must agree as well.
    """

    raw_turn_life: timedelta = timedelta(days=30)
    near_duplicate_similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The namespace and times of a draft. ``stated_at`` is event time, ``written_at`` ingest time, both UTC."""

    namespace: Namespace
    stated_at: datetime
    written_at: datetime
    sources: tuple[Source, ...] = ()
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    expires_at: datetime | None = None
    said_at: datetime | None = None
    """The client's own timestamp, None when it gave none."""
    times: tuple[NamedTime, ...] = ()
    """What the draft's text names, in the zone of its timestamp's offset."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A draft and the fact that it states. ``write`` names it inside its event; None without an event id."""

    draft: MemoryDraft
    context: Context
    value_hash: str
    chain: str
    write: str | None

    @property
    def is_raw(self) -> bool:
        """Whether the draft is a verbatim turn."""
        return self.draft.memory_type == "RawTurn"


def statements_of(
    add: StoreAdd, *, written_at: datetime, policy: WritePolicy, arrivals: Iterator[int]
) -> list[Statement]:
    """Returns the statements of an add in the order of its drafts.

    Each is written some microseconds after ``written_at``, its number in ``arrivals``, so that their order is kept.
    """
    writes = _write_names(add.event_id, add.drafts)
    ends = [_end(add, draft, end, written_at, policy) for draft, end in zip_longest(add.drafts, add.ends) if draft]
    return [
        _statement(draft, _context(add, draft, end, written_at, arrival), write)
        for draft, end, write, arrival in zip(add.drafts, ends, writes, arrivals, strict=False)
    ]


def _statement(draft: MemoryDraft, context: Context, write: str | None) -> Statement:
    """Build the statement: a raw turn is a fact of its own, and other drafts share a fact by their key."""
    if draft.memory_type == "RawTurn":
        chain = raw_turn_id(context.namespace, draft, context.said_at, write or "")
    else:
        chain = chain_id(context.namespace, draft.memory_type, draft.key)
    return Statement(draft, context, content_hash(draft.value), chain, write)


def _end(
    add: StoreAdd, draft: MemoryDraft, own: datetime | None, written_at: datetime, policy: WritePolicy
) -> datetime | None:
    """Return the earlier of the draft's own end and the add's, which for a raw turn is that of its life."""
    common = add.expires_at
    if common is None and draft.memory_type == "RawTurn":
        common = written_at + policy.raw_turn_life
    return min((utc(end) for end in (own, common) if end is not None), default=None)


def _context(
    add: StoreAdd, draft: MemoryDraft, expires_at: datetime | None, written_at: datetime, arrival: int
) -> Context:
    said_at = utc(add.timestamp) if add.timestamp else None
    sources = (draft.source,) if draft.source else add.sources
    spoken_at = (draft.source.timestamp if draft.source else None) or add.timestamp or written_at
    return Context(
        namespace=add.namespace,
        stated_at=said_at or written_at,
        written_at=written_at + timedelta(microseconds=arrival),
        sources=sources,
        metadata=add.metadata,
        expires_at=expires_at,
        said_at=said_at,
        times=times_of(draft.value, spoken_at, sources),
    )


def _write_names(event_id: str | None, drafts: Sequence[MemoryDraft]) -> list[str | None]:
    """``event:digest:occurrence`` per draft: the same statement twice in one event is two writes."""
    if event_id is None:
        return [None] * len(drafts)
    seen: Counter[str] = Counter()
    names: list[str | None] = []
    for draft in drafts:
        digest = draft_digest(draft)
        names.append(f"{event_id}:{digest}:{seen[digest]}")
        seen[digest] += 1
    return names
