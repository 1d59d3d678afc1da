"""A stored memory inside the service, and its form as a payload in the vector store."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import JsonValue

from memloop.wire.memory import MemoryItem, Namespace, Scope
from memory_store.conflicts import Version
from memory_store.filters import Condition, Equals, Exists, Not, all_of
from memory_store.metadata import flags_of
from memory_store.vectors.port import Payload

_INTERNAL = frozenset({"tenant", "chain", "confirmed_at", "writes", "flags"})


@dataclass(frozen=True, slots=True)
class Record:
    """A memory with what its wire form does not show.

    ``chain`` is shared by all versions of one fact; ``confirmed_at`` is the event time of its last statement;
    ``writes`` names the writes that made or touched it (``event:digest:occurrence:outcome``), newest last.
    """

    tenant: str
    item: MemoryItem
    chain: str
    confirmed_at: datetime
    writes: tuple[str, ...] = ()

    @property
    def namespace(self) -> Namespace:
        """Whose memory it is."""
        item = self.item
        return Namespace(tenant=self.tenant, user_id=item.user_id, agent_id=item.agent_id, run_id=item.run_id)

    @property
    def embedded_text(self) -> str:
        """What the vectors are made of: the key's words help short values.

        A raw turn's key says nothing, and a text that is kept as it is has itself for a key: once is enough.
        """
        item = self.item
        if item.memory_type == "RawTurn" or item.memory.strip().startswith(item.key):
            return item.memory
        return f"{item.key}: {item.memory}"

    def as_version(self) -> Version:
        """The record on the timeline of its fact."""
        item = self.item
        return Version(item.id, item.hash, item.version, item.valid_from, self.confirmed_at, item.valid_to)


def to_payload(record: Record) -> Payload:
    """All of the record as JSON."""
    payload: dict[str, JsonValue] = record.item.model_dump(mode="json", exclude={"id"})
    payload["tenant"] = record.tenant
    payload["chain"] = record.chain
    payload["confirmed_at"] = record.confirmed_at.isoformat()
    payload["writes"] = list[JsonValue](record.writes)
    payload["flags"] = list[JsonValue](flags_of(record.item.metadata))
    return payload


def from_payload(item_id: str, payload: Payload) -> Record:
    """The record that :func:`to_payload` wrote."""
    fields = {name: value for name, value in payload.items() if name not in _INTERNAL}
    writes = payload["writes"]
    return Record(
        tenant=str(payload["tenant"]),
        item=MemoryItem.model_validate({**fields, "id": item_id}),
        chain=str(payload["chain"]),
        confirmed_at=datetime.fromisoformat(str(payload["confirmed_at"])),
        writes=tuple(str(write) for write in writes) if isinstance(writes, list) else (),
    )


def of_tenant(tenant: str) -> Condition:
    """The condition that stands in every filter."""
    return Equals("tenant", tenant)


def within(scope: Scope) -> Condition:
    """Memories of the scope, which may be a namespace: ids that are set must match, the others may be anything."""
    ids = (("user_id", scope.user_id), ("agent_id", scope.agent_id), ("run_id", scope.run_id))
    owners = (Equals(field, value) for field, value in ids if value is not None)
    return all_of([of_tenant(scope.tenant), *owners])


def exactly_in(namespace: Namespace) -> Condition:
    """Memories whose every id is the namespace's, those that it leaves open included."""
    optional = (("agent_id", namespace.agent_id), ("run_id", namespace.run_id))
    missing = (Not(Exists(field)) for field, value in optional if value is None)
    return all_of([within(namespace), *missing])


def any_write(names: Iterable[str]) -> tuple[str, ...]:
    """The names under which a write may have been recorded, whatever its outcome was."""
    outcomes = ("inserted", "touched", "superseded")
    return tuple(f"{name}:{outcome}" for name in names for outcome in outcomes)


def now() -> datetime:
    """Ingest time."""
    return datetime.now(UTC)
