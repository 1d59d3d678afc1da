"""The working set of one add: drafts are resolved against it one after another, then it is written at once."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import JsonValue

from memloop.wire.memory import MemoryDraft, MemoryItem, Namespace, Outcome, Source, Written
from memory_store.items.conflicts import Change, Placement, Resolution
from memory_store.items.documents import Record
from memory_store.items.identity import chain_id, content_hash, raw_turn_id, snapshot_id, version_id

_MAX_TAGS = 64
_KEPT_WRITES = 32


@dataclass(frozen=True, slots=True)
class Context:
    """What all drafts of one add share. ``stated_at`` is event time, ``written_at`` ingest time, both UTC."""

    namespace: Namespace
    stated_at: datetime
    written_at: datetime
    sources: tuple[Source, ...] = ()
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    expires_at: datetime | None = None
    said_at: datetime | None = None
    """The client's own timestamp, None when it gave none."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A draft with the fact that it speaks of. ``write`` names it inside its event; None without an event id."""

    draft: MemoryDraft
    value_hash: str
    chain: str
    write: str | None

    @classmethod
    def of(cls, draft: MemoryDraft, context: Context, write: str | None) -> "Statement":
        """A raw turn is a fact of its own; other drafts with one key speak of one fact."""
        if draft.memory_type == "RawTurn":
            chain = raw_turn_id(context.namespace, draft, context.said_at, write or "")
        else:
            chain = chain_id(context.namespace, draft.memory_type, draft.key)
        return cls(draft, content_hash(draft.value), chain, write)


class Batch:
    """Records by id, and which of them have to be written."""

    def __init__(self, context: Context, known: Iterable[Record]) -> None:
        self.context = context
        self._records = {record.item.id: record for record in known}
        self._stored = frozenset(self._records)
        self._dirty: dict[str, None] = {}

    def knows(self, item_id: str) -> bool:
        """Whether a record has this id."""
        return item_id in self._records

    def add(self, record: Record) -> None:
        """Make a record part of the set that is to be written as it is."""
        self._save(record.decided("imported", self.context.written_at))

    def add_known(self, record: Record) -> None:
        """Make a stored record part of the set, unless it is already."""
        self._records.setdefault(record.item.id, record)
        self._stored |= {record.item.id}

    def fact(self, chain: str) -> list[Record]:
        """All records of a fact, deleted ones too."""
        return [record for record in self._records.values() if record.chain == chain]

    def earlier_outcome(self, write: str | None) -> Written | None:
        """What a former delivery of the same write did, if it was recorded."""
        if write is None:
            return None
        outcomes: tuple[Outcome, ...] = ("inserted", "touched", "superseded")
        for outcome in outcomes:
            for record in self._records.values():
                if f"{write}:{outcome}" in record.writes:
                    return Written(outcome=outcome, item=record.item)
        return None

    def mend(self, changes: Iterable[Change]) -> None:
        """Carry out changes that no statement asked for."""
        for change in changes:
            self._change(self._records[change.id].decided("overtaken", self.context.written_at), change, None)

    def apply(self, statement: Statement, resolution: Resolution) -> Written:
        """Carry out the resolution; the outcome is recorded in the item that it names."""
        number = self._next_number(statement.chain)
        placed_id = version_id(statement.chain, statement.value_hash, number) if resolution.placed else None
        if statement.draft.memory_type == "RawTurn":
            placed_id = statement.chain
        placement = self._make_room(resolution, placed_id, number + 1)
        if placement and placed_id:
            record = self._new(statement, placement, placed_id, number)
        else:
            record = self._touched(statement, self._records[resolution.touched or ""])
        other = placement.supersedes if placement else None
        decided = record.decided(
            resolution.rule, self.context.written_at, other=other, similarity=resolution.similarity
        )
        return self._record_outcome(decided, statement, resolution.outcome)

    def restore(self, record: Record, resolution: Resolution) -> Record:
        """Bring a deleted record back to where the resolution wants it; what holds its fact then.

        That is the record itself, or the version that says the same and was touched.
        """
        now, item_id = self.context.written_at, record.item.id
        placement = self._make_room(resolution, item_id, self._next_number(record.chain))
        if placement is None:
            touched = self._records[resolution.touched or ""]
            return self._save(touched.decided("recovered", now, other=item_id))
        live = placement.valid_to is None
        restored = _with_item(
            record,
            status="activated" if live else "archived",
            valid_from=placement.valid_from,
            valid_to=placement.valid_to,
            supersedes=placement.supersedes or record.item.supersedes,
            expires_at=record.ended_before,
            updated_at=now,
        )
        confirmed_at = record.confirmed_at if live else placement.valid_from
        restored = replace(restored, confirmed_at=confirmed_at, ended_before=None)
        return self._save(restored.decided("recovered", now))

    def changed(self) -> tuple[list[Record], list[Record]]:
        """Records that are new, and stored ones that have other fields now."""
        new = [self._records[item_id] for item_id in self._dirty if item_id not in self._stored]
        stored = [self._records[item_id] for item_id in self._dirty if item_id in self._stored]
        return new, stored

    def current(self, written: Written) -> Written:
        """The same outcome with the item's final fields."""
        return written.model_copy(update={"item": self._records[written.item.id].item})

    def _next_number(self, chain: str) -> int:
        return max((record.item.version for record in self.fact(chain)), default=0) + 1

    def _save(self, record: Record) -> Record:
        self._records[record.item.id] = record
        self._dirty[record.item.id] = None
        return record

    def _make_room(self, resolution: Resolution, placed_id: str | None, number: int) -> Placement | None:
        """Apply the changes to other versions; where the new one goes, if there is one."""
        first_half = None
        for change in resolution.changes:
            record = self._records[change.id]
            if change.keeps_first_half_until:
                first_half = self._keep_first_half(record, change.keeps_first_half_until).item.id
                record = _with_item(record, version=number)
            if change.id != resolution.touched:
                record = record.decided("overtaken", self.context.written_at, other=placed_id or resolution.touched)
            self._change(record, change, placed_id)
        placed = resolution.placed
        return replace(placed, supersedes=first_half or placed.supersedes) if placed else None

    def _keep_first_half(self, record: Record, until: datetime) -> Record:
        item_id = snapshot_id(record.item.id, record.item.version)
        half = _with_item(record, id=item_id, status="archived", valid_to=until, updated_at=self.context.written_at)
        return self._save(replace(half, confirmed_at=record.item.valid_from, writes=()))

    def _change(self, record: Record, change: Change, placed_id: str | None) -> None:
        fields: dict[str, object] = {"updated_at": self.context.written_at}
        if change.valid_from:
            fields["valid_from"] = change.valid_from
        if change.valid_to:
            fields |= {"valid_to": change.valid_to, "status": "archived"}
        if change.after_new:
            fields["supersedes"] = placed_id
        changed = _with_item(record, **fields)
        self._save(replace(changed, confirmed_at=change.confirmed_at or changed.confirmed_at))

    def _new(self, statement: Statement, placement: Placement, item_id: str, number: int) -> Record:
        context, draft = self.context, statement.draft
        item = MemoryItem(
            id=item_id,
            memory=draft.value,
            key=draft.key,
            memory_type=draft.memory_type,
            tags=draft.tags,
            user_id=context.namespace.user_id,
            agent_id=context.namespace.agent_id,
            run_id=context.namespace.run_id,
            metadata=context.metadata,
            version=number,
            status="archived" if placement.valid_to else "activated",
            supersedes=placement.supersedes,
            valid_from=placement.valid_from,
            valid_to=placement.valid_to,
            created_at=context.written_at,
            updated_at=context.written_at,
            expires_at=context.expires_at,
            sources=context.sources,
            hash=statement.value_hash,
        )
        return Record(context.namespace.tenant, item, statement.chain, confirmed_at=placement.valid_from)

    def _touched(self, statement: Statement, record: Record) -> Record:
        context = self.context
        tags = tuple(dict.fromkeys((*record.item.tags, *statement.draft.tags)))[:_MAX_TAGS]
        expires_at = _later(record.item.expires_at, context.expires_at)
        return _with_item(record, tags=tags, expires_at=expires_at, updated_at=context.written_at)

    def _record_outcome(self, record: Record, statement: Statement, outcome: Outcome) -> Written:
        writes = record.writes
        if statement.write is not None:
            writes = (*writes, f"{statement.write}:{outcome}")
        saved = self._save(replace(record, writes=(*writes[:1], *writes[1:][-_KEPT_WRITES:])))
        return Written(outcome=outcome, item=saved.item)


def _with_item(record: Record, **fields: object) -> Record:
    return replace(record, item=record.item.model_copy(update=fields))


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    """The later end of two lives; None is no end."""
    return None if one is None or other is None else max(one, other)
