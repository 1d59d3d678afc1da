"""Holds the working set of a write: statements change it one after another, then it is stored in one step.

Records by id, by fact and by the writes that made them, so that a write of many statements stays linear. Batches and
single records become points here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import JsonValue

from memloop.wire.fields import check_metadata
from memloop.wire.memory import MemoryItem, Namespace, Outcome, Written
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import ItemChanges, Record, exactly_in, to_payload, within
from memory_store.items.identity import snapshot_id, version_id
from memory_store.items.statements import Change, Placement, Resolution, Statement, Version, repair
from memory_store.vectors.port import Collection, Point

_OUTCOMES: tuple[Outcome, ...] = ("inserted", "touched", "superseded")


class KnownRecords:
    """``at``: the ingest time that decides which records are expired."""

    def __init__(self, records: Iterable[Record], *, at: datetime) -> None:
        self._at = at
        self._by_id: dict[str, Record] = {}
        self._by_write: dict[str, str] = {}
        self._facts: dict[str, dict[str, Version | None]] = {}
        self._numbers: dict[str, int] = {}
        for record in records:
            self.put(record)

    def __getitem__(self, item_id: str) -> Record:
        return self._by_id[item_id]

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._by_id

    def ids(self) -> Iterable[str]:
        """Returns the ids in the order in which they came."""
        return self._by_id

    def put(self, record: Record) -> None:
        """Adds a record or replaces the one of the same id."""
        item = record.item
        self._by_id[item.id] = record
        self._facts.setdefault(record.chain, {})[item.id] = None if record.is_over(self._at) else record.as_version()
        for chain in (record.chain, record.origin or record.chain):  # no id is made a second time
            self._numbers[chain] = max(item.version, self._numbers.get(chain, 0))
        for write in record.writes:
            self._by_write.setdefault(write, item.id)

    def fact(self, chain: str) -> list[Record]:
        """Returns all records of a fact, deleted ones too."""
        return [self._by_id[item_id] for item_id in self._facts.get(chain, ())]

    def versions(self, chain: str) -> list[Version]:
        """Returns the versions that a statement is compared with: neither deleted nor expired ones."""
        return [version for version in self._facts.get(chain, {}).values() if version is not None]

    def next_number(self, chain: str) -> int:
        return self._numbers.get(chain, 0) + 1

    def earlier_outcome(self, write: str | None) -> Written | None:
        """Returns the outcome of a former delivery of the same write, if it was recorded."""
        if write is None:
            return None
        for outcome in _OUTCOMES:
            item_id = self._by_write.get(f"{write}:{outcome}")
            if item_id is not None:
                return Written(outcome=outcome, item=self._by_id[item_id].item)
        return None


_MAX_TAGS = 64
_KEPT_WRITES = 32


class Batch:
    """The records of one namespace that a write may change, and those of them that it must store.

    ``written_at`` is the ingest time of the write.
    """

    def __init__(self, namespace: Namespace, known: Iterable[Record], *, written_at: datetime) -> None:
        self.namespace = namespace
        self.written_at = written_at
        self.records = KnownRecords(known, at=written_at)
        self._stored = set(self.records.ids())
        self._dirty: dict[str, None] = {}
        self._repaired: set[str] = set()

    def add(self, record: Record) -> None:
        """Stores an imported record unchanged."""
        self._save(record.decided("imported", self.written_at))

    def add_known(self, record: Record) -> None:
        """Makes a stored record part of the set, unless it is already."""
        if record.item.id not in self.records:
            self.records.put(record)
        self._stored.add(record.item.id)

    def repair(self, chain: str) -> None:
        """End versions of the fact that a later one should have ended. Statements that are applied next leave none."""
        if chain in self._repaired:
            return
        self._repaired.add(chain)
        for change in repair(self.records.versions(chain)):
            self._change(self.records[change.id].decided("overtaken", self.written_at), change, None)

    def apply(self, statement: Statement, resolution: Resolution) -> Written:
        """Carries out the resolution and records the outcome in the item that it names."""
        number = self.records.next_number(statement.chain)
        placed_id = (
            (statement.chain if statement.is_raw else version_id(statement.chain, statement.value_hash, number))
            if resolution.placed
            else None
        )
        placement = self._make_room(resolution, placed_id, number + 1)
        if placement and placed_id:
            record = _new(statement, placement, placed_id, number)
        else:
            record = _touched(statement, self.records[resolution.touched or ""])
        other = placement.supersedes if placement else None
        decided = record.decided(resolution.rule, self.written_at, other=other, similarity=resolution.similarity)
        writes = (
            decided.writes if statement.write is None else (*decided.writes, f"{statement.write}:{resolution.outcome}")
        )
        saved = self._save(replace(decided, writes=(*writes[:1], *writes[1:][-_KEPT_WRITES:])))
        return Written(outcome=resolution.outcome, item=saved.item)

    def restore(self, record: Record, resolution: Resolution) -> Record:
        """Return a deleted record to its place in event time; returns the record that then holds its fact.

        That is the record itself, or a version with the same value, which is touched.
        """
        now, item_id = self.written_at, record.item.id
        placement = self._make_room(resolution, item_id, self.records.next_number(record.chain))
        if placement is None:
            touched = self.records[resolution.touched or ""]
            return self._save(touched.decided("recovered", now, other=item_id))
        live = placement.valid_to is None
        restored = record.with_item(
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
        """Returns the records that are new, and stored ones that have other fields now."""
        new = [self.records[item_id] for item_id in self._dirty if item_id not in self._stored]
        stored = [self.records[item_id] for item_id in self._dirty if item_id in self._stored]
        return new, stored

    def current(self, written: Written) -> Written:
        """Returns the same outcome with the item's final fields."""
        return Written(outcome=written.outcome, item=self.records[written.item.id].item)

    def _save(self, record: Record) -> Record:
        self.records.put(record)
        self._dirty[record.item.id] = None
        return record

    def _make_room(self, resolution: Resolution, placed_id: str | None, number: int) -> Placement | None:
        """Applies the changes to other versions; returns the new one's place, if there is a new one."""
        first_half = None
        for change in resolution.changes:
            record = self.records[change.id]
            if change.keeps_first_half_until:
                item_id = snapshot_id(record.item.id, record.item.version)
                half = record.with_item(
                    id=item_id, status="archived", valid_to=change.keeps_first_half_until, updated_at=self.written_at
                )
                first_half = self._save(replace(half, confirmed_at=record.item.valid_from, writes=())).item.id
                record = record.with_item(version=number)
            if change.id != resolution.touched:
                record = record.decided("overtaken", self.written_at, other=placed_id or resolution.touched)
            self._change(record, change, placed_id)
        placed = resolution.placed
        return replace(placed, supersedes=first_half or placed.supersedes) if placed else None

    def _change(self, record: Record, change: Change, placed_id: str | None) -> None:
        fields: ItemChanges = {"updated_at": self.written_at}
        if change.valid_from:
            fields["valid_from"] = change.valid_from
        if change.valid_to:
            fields["valid_to"] = change.valid_to
            fields["status"] = "archived"
        if change.after_new:
            fields["supersedes"] = placed_id
        changed = record.with_item(**fields)
        self._save(replace(changed, confirmed_at=change.confirmed_at or changed.confirmed_at))


def _new(statement: Statement, placement: Placement, item_id: str, number: int) -> Record:
    draft, space = statement.draft, statement.namespace
    item = MemoryItem(
        id=item_id,
        memory=draft.value,
        key=draft.key,
        memory_type=draft.memory_type,
        tags=draft.tags,
        user_id=space.user_id,
        agent_id=space.agent_id,
        run_id=space.run_id,
        metadata=statement.metadata,
        version=number,
        status="archived" if placement.valid_to else "activated",
        supersedes=placement.supersedes,
        valid_from=placement.valid_from,
        valid_to=placement.valid_to,
        created_at=statement.written_at,
        updated_at=statement.written_at,
        expires_at=statement.expires_at,
        sources=statement.sources,
        hash=statement.value_hash,
        times=statement.times,
    )
    return Record(space.tenant, item, statement.chain, confirmed_at=placement.valid_from)


def _touched(statement: Statement, record: Record) -> Record:
    tags = tuple(dict.fromkeys((*record.item.tags, *statement.draft.tags)))[:_MAX_TAGS]
    # The later end of two lives; None is no end
    expires_at = (
        None
        if record.item.expires_at is None or statement.expires_at is None
        else max(record.item.expires_at, statement.expires_at)
    )
    feedback = record.item.feedback
    if feedback and feedback.verdict != "helpful" and statement.stated_at > feedback.at:
        feedback = None  # it was against a fact that is stated again later
    return record.with_item(
        tags=tags,
        metadata=_joined_metadata(record.item.metadata, statement.metadata),
        expires_at=expires_at,
        updated_at=statement.written_at,
        feedback=feedback,
    )


def _joined_metadata(known: dict[str, JsonValue], new: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return both; of a field of both the new one, and the new ones alone where both are too much."""
    both = {**known, **new}
    try:
        return check_metadata(both)
    except ValueError:
        return new


async def points_of(records: Sequence[Record], encoding: TextEncoding) -> list[Point]:
    """Embeds the records in one call and returns them as points."""
    vectors = await encoding.documents([record.embedded_text for record in records])
    return [
        Point(record.item.id, dense, sparse, to_payload(record))
        for record, (dense, sparse) in zip(records, vectors, strict=True)
    ]


async def updated_point(record: Record, vectors: Collection) -> list[Point]:
    """Returns the record's point with its stored vectors and the record's fields; empty if the item is gone."""
    found = await vectors.get([record.item.id], where=within(record.namespace))
    return [Point(old.id, old.dense, old.sparse, to_payload(record)) for old in found]


async def embedded(batches: Iterable[Batch], vectors: Collection, encoding: TextEncoding) -> list[Point]:
    """Returns the batches' new and changed points; a stored point keeps its vectors."""
    points: list[Point] = []
    unembedded: list[Record] = []
    for batch in batches:
        new, stored = batch.changed()
        changed = {record.item.id: record for record in stored}
        kept = await vectors.get(list(changed), where=exactly_in(batch.namespace)) if changed else ()
        points += [Point(old.id, old.dense, old.sparse, to_payload(changed.pop(old.id))) for old in kept]
        unembedded += [*new, *changed.values()]
    return points + await points_of(unembedded, encoding)
