"""Defines a stored memory inside the service, its form as a payload, and how those that a condition names are read."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias, TypedDict, Unpack

from pydantic import JsonValue, TypeAdapter

from memloop.wire.feedback import Feedback, Verdict
from memloop.wire.memory import MemoryItem, NamedTime, Namespace, Scope, Status
from memloop.wire.store_requests import ItemVersion, VersionChange
from memory_store.items.identity import flags_of, normalised_key, place_of, speaker_of
from memory_store.items.statements import Rule, Version
from memory_store.vectors.filters import AllOf, Condition, Equals, Missing, Not, TimeRange, all_of, utc
from memory_store.vectors.port import Collection, Page, Payload

Cause: TypeAlias = (
    Rule | Verdict | Literal["overtaken", "edited", "deleted", "recovered", "imported", "feedback withdrawn"]
)


_BECAUSE: Mapping[str, str] = {
    "new fact": "no live version has the key {key!r}",
    "same fact": "the version of {key!r} that held at that time has the same value: it was confirmed",
    "known later": "the next version of {key!r} has the same value: it now holds from the earlier time on",
    "changed fact": "the key {key!r} has another value, and this one was stated last: it supersedes the other",
    "older news": "a later statement about {key!r} was known already: this one went into history",
    "interlude": "the other value of {key!r} was stated before and after: this one went into history between them",
    "near duplicate": "another key has nearly the same value, with equal numbers and negations: it was confirmed",
    "raw turn": "a turn stored verbatim, identified by text, time and write event",
    "overtaken": "another statement about {key!r} took over part of its time",
    "edited": "a client edited it",
    "deleted": "a client deleted it",
    "imported": "it came from a file",
    "recovered": "a client took its deletion back",
    "helpful": "a client called it helpful: searches raise it a little",
    "wrong": "a client called it wrong: searches leave it out",
    "outdated": "a client called it outdated: searches lower it",
    "feedback withdrawn": "a client took its feedback back",
}


_KEPT = 16
_PAGE = 256


@dataclass(frozen=True, slots=True)
class Decision:
    """One change of a version, at an ingest time; the fields are those of ``VersionChange``."""

    cause: str
    at: datetime
    other: str | None = None
    similarity: float | None = None

    def in_words(self, key: str) -> VersionChange:
        """Return the decision as history shows it. ``key`` is the normalised key that was compared."""
        because = _BECAUSE.get(self.cause, "").format(key=key)
        return VersionChange(rule=self.cause, because=because, at=self.at, other=self.other, similarity=self.similarity)

    def to_json(self) -> JsonValue:
        """Return the form of a payload, without the words."""
        return {"cause": self.cause, "at": self.at.isoformat(), "other": self.other, "similarity": self.similarity}


def decisions_from(stored: JsonValue) -> tuple[Decision, ...]:
    """Decode the output of :meth:`Decision.to_json`; empty where nothing was stored."""
    return _DECISIONS.validate_python(stored or ())


def newest_decision(stored: JsonValue) -> Decision | None:
    """Decode the last of them; None where nothing was stored."""
    return decisions_from(stored[-1:])[0] if isinstance(stored, list) and stored else None


_DECISIONS = TypeAdapter(tuple[Decision, ...])


_COMPARED_CHARS = 480
"""Of a key, to find out whether it is its text's beginning."""
_ROLES = frozenset({"user", "assistant", "system", "tool"})
_INTERNAL = frozenset(
    {"tenant", "chain", "confirmed_at", "writes", "flags", "decisions", "ended_before", "place", "speaker"}
)


class ItemChanges(TypedDict, total=False):
    """The fields of an item that the store changes."""

    id: str
    key: str
    memory: str
    metadata: dict[str, JsonValue]
    tags: tuple[str, ...]
    version: int
    status: Status
    supersedes: str | None
    valid_from: datetime
    valid_to: datetime | None
    updated_at: datetime
    expires_at: datetime | None
    hash: str
    times: tuple[NamedTime, ...]
    feedback: Feedback | None


@dataclass(frozen=True, slots=True)
class Record:
    """A memory with the fields that its wire form omits.

    ``chain`` is shared by all versions of one fact; the former states of a text have the id of their item there.
    ``origin`` is the chain of which the id was made, where an edit of the text gave the item another;
    ``confirmed_at`` is the event time of its last statement;
    ``writes`` names the writes that made or touched it (``event:digest:occurrence:outcome``), newest last;
    ``decisions`` hold the reasons for its state; ``ended_before`` is the ``expires_at`` that a deletion replaced.
    """

    tenant: str
    item: MemoryItem
    chain: str
    confirmed_at: datetime
    writes: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    ended_before: datetime | None = None
    origin: str | None = None

    @property
    def namespace(self) -> Namespace:
        return self.item.namespace(self.tenant)

    @property
    def embedded_text(self) -> str:
        """The text to embed, with the key, whose words help short values.

        A turn is embedded with its speaker instead of its key. The key of a verbatim text is the text itself or,
        up to a digest, its beginning, so it is embedded once.
        """
        item = self.item
        if item.memory_type == "KeptTurn":
            return item.memory
        if item.memory_type == "RawTurn":
            return f"{item.tags[0]}: {item.memory}" if item.tags and item.tags[0] not in _ROLES else item.memory
        if item.memory.strip().startswith(item.key[:_COMPARED_CHARS]):
            return item.memory
        return f"{item.key}: {item.memory}"

    def with_item(self, **changes: Unpack[ItemChanges]) -> "Record":
        return replace(self, item=self.item.model_copy(update=changes))

    def as_version(self) -> Version:
        """Return the record as a version on its fact's timeline."""
        item = self.item
        return Version(item.id, item.hash, item.version, item.valid_from, self.confirmed_at, item.valid_to)

    def as_history(self) -> ItemVersion:
        key = normalised_key(self.item.key)
        changes = tuple(decision.in_words(key) for decision in self.decisions)
        return ItemVersion(**dict(self.item), changes=changes)

    def decided(
        self, cause: Cause, at: datetime, *, other: str | None = None, similarity: float | None = None
    ) -> "Record":
        """Return the record with one more decision in its history; a long one keeps its first and its newest."""
        more = (*self.decisions, Decision(cause, at, other, similarity))
        return replace(self, decisions=(*more[:1], *more[1:][-_KEPT:]))

    def is_over(self, moment: datetime) -> bool:
        """Return whether the record is deleted or expired at this ingest time."""
        expires_at = self.item.expires_at
        return self.item.status == "deleted" or (expires_at is not None and expires_at <= moment)


_LEFT_OUT_EMPTY = ("tags", "metadata", "sources", "flags", "speaker")
"""Lists and objects that are mostly empty: each costs an embedded store as much as a text."""


def to_payload(record: Record) -> Payload:
    """Encode the whole record as JSON, without lists and objects that are empty and that a reader may lack."""
    payload: dict[str, JsonValue] = record.item.model_dump(mode="json", exclude={"id"})
    payload["tenant"] = record.tenant
    payload["chain"] = [record.chain, record.origin] if record.origin not in (None, record.chain) else record.chain
    payload["confirmed_at"] = record.confirmed_at.isoformat()
    payload["writes"] = list[JsonValue](record.writes)
    payload["flags"] = list[JsonValue](flags_of(record.item.metadata))
    payload["decisions"] = [decision.to_json() for decision in record.decisions]
    payload["ended_before"] = record.ended_before.isoformat() if record.ended_before else None
    payload["place"] = place_of(record.item.valid_from, record.item.created_at)
    item = record.item
    payload["speaker"] = list[JsonValue](speaker_of(item.memory, item.memory_type, item.tags, item.sources))
    return {name: value for name, value in payload.items() if value or name not in _LEFT_OUT_EMPTY}


def from_payload(item_id: str, payload: Payload) -> Record:
    fields = {name: value for name, value in payload.items() if name not in _INTERNAL}
    writes, ended_before = payload["writes"], payload.get("ended_before")
    chain, origin = payload["chain"] if isinstance(payload["chain"], list) else (payload["chain"], None)
    return Record(
        tenant=str(payload["tenant"]),
        item=MemoryItem.model_validate({**fields, "id": item_id}),
        chain=str(chain),
        confirmed_at=datetime.fromisoformat(str(payload["confirmed_at"])),
        writes=tuple(str(write) for write in writes) if isinstance(writes, list) else (),
        decisions=decisions_from(payload.get("decisions")),
        ended_before=datetime.fromisoformat(ended_before) if isinstance(ended_before, str) else None,
        origin=str(origin) if origin else None,
    )


def of_tenant(tenant: str) -> Condition:
    """Return the condition that every filter contains."""
    return Equals("tenant", tenant)


def within(scope: Scope) -> Condition:
    """Memories of the scope, which may be a namespace: ids that are set must match, the others may be anything."""
    ids = (("user_id", scope.user_id), ("agent_id", scope.agent_id), ("run_id", scope.run_id))
    owners = (Equals(field, value) for field, value in ids if value is not None)
    return all_of([of_tenant(scope.tenant), *owners])


def exactly_in(namespace: Namespace) -> Condition:
    """Memories whose every id is the namespace's, those that it leaves open included."""
    optional = (("agent_id", namespace.agent_id), ("run_id", namespace.run_id))
    missing = (Missing(field) for field, value in optional if value is None)
    return all_of([within(namespace), *missing])


async def pages(collection: Collection, where: Condition, *, size: int = _PAGE) -> AsyncGenerator[Page]:
    """Yields every page in the order of ids."""
    start_id: str | None = None
    while True:
        page = await collection.scroll(where=where, limit=size, start_id=start_id)
        yield page
        if page.next_id is None:
            return
        start_id = page.next_id


async def every_record(vectors: Collection, where: Condition) -> list[Record]:
    return [from_payload(one.id, one.payload) async for page in pages(vectors, where) for one in page.found]


@dataclass(frozen=True, slots=True)
class View:
    """The visible memories of a namespace. Deleted and expired ones never are.

    ``as_of``: memories that held at that event time; without it ``latest_only`` shows only live versions.
    """

    latest_only: bool = True
    include_raw: bool = False
    as_of: datetime | None = None

    def condition(self, moment: datetime) -> AllOf:
        live = self.latest_only and self.as_of is None
        parts: list[Condition | None] = [
            Not(TimeRange("expires_at", lte=moment)),
            Equals("status", "activated") if live else Not(Equals("status", "deleted")),
            None if self.include_raw else Not(Equals("memory_type", "RawTurn")),
        ]
        if self.as_of is not None:
            parts.append(TimeRange("valid_from", lte=utc(self.as_of)))
            if self.latest_only:
                parts.append(Not(TimeRange("valid_to", lte=utc(self.as_of))))
        return all_of(parts)


def any_write(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names under which a write may be recorded, for any outcome."""
    outcomes = ("inserted", "touched", "superseded")
    return tuple(f"{name}:{outcome}" for name in names for outcome in outcomes)


Clock: TypeAlias = Callable[[], datetime]
"""Gives ingest time, UTC."""


def now() -> datetime:
    """Return the present time: the ``Clock`` of every process outside tests."""
    return datetime.now(UTC)
