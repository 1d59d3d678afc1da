"""Stored memories one by one and by namespace: read, edit, delete, history, list, erase, expire."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memloop.wire.errors import Conflict, DependencyError, NotFound, PreconditionFailed, Unprocessable
from memloop.wire.memory import Erased, History, ItemPage, ItemPatch, MemoryItem, Namespace
from memory_store.buffers.buffers import Buffers
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import Clock, Record, from_payload, now, of_tenant, to_payload, within
from memory_store.items.identity import content_hash, snapshot_id
from memory_store.items.namespace_locks import Lanes
from memory_store.items.points import points_of
from memory_store.items.view import View
from memory_store.items.writing import every_record
from memory_store.metrics import Metrics
from memory_store.vectors.filters import Equals, Ids, TimeRange, all_of, utc
from memory_store.vectors.metadata import check_metadata
from memory_store.vectors.port import Point, VectorStore


@dataclass(frozen=True, slots=True)
class Owned:
    """An item's id and the tenant that asks for it."""

    tenant: str
    item_id: str


class Items:
    """Everything about stored items that is not an add or a search.

    ``deleted_life``: how long a deleted item stays in history before it is removed.
    """

    def __init__(
        self,
        vectors: VectorStore,
        encoding: TextEncoding,
        *,
        lanes: Lanes,
        buffers: Buffers,
        deleted_life: timedelta,
        metrics: Metrics,
        clock: Clock = now,
    ) -> None:
        self._vectors = vectors
        self._encoding = encoding
        self._lanes = lanes
        self._buffers = buffers
        self._deleted_life = deleted_life
        self._metrics = metrics
        self._clock = clock

    async def read(self, owned: Owned) -> MemoryItem:
        """One version, live or archived. Raises ``NotFound``: unknown, of another tenant, deleted or expired."""
        return (await self._visible(owned)).item

    async def edit(self, owned: Owned, patch: ItemPatch, *, if_version: int | None) -> MemoryItem:
        """Change a live item; it keeps its id, its former state goes into history.

        Raises ``NotFound``, ``PreconditionFailed`` (another version), ``Conflict`` (superseded, not editable) and
        ``Unprocessable`` (metadata that cannot be stored).
        """
        check_metadata(patch.metadata or {})
        namespace = (await self._visible(owned)).namespace
        async with self._lanes.hold(namespace.lane()):
            record = await self._visible(owned)
            _check_version(record, if_version)
            if record.item.status != "activated":
                raise Conflict("this version was superseded; only the live one can be edited", code="superseded")
            fields = _patched_fields(patch)
            if not fields:
                return record.item
            versions = await fact_of(self._vectors, record)
            number = max(version.item.version for version in versions) + 1
            before, after = _edited(record, fields, number=number, moment=self._clock())
            await self._vectors.upsert(await points_of([before, after], self._encoding))
            return after.item

    async def delete(self, owned: Owned, *, if_version: int | None) -> None:
        """Take one version out of every view but history. Raises ``NotFound`` and ``PreconditionFailed``."""
        namespace = (await self._visible(owned)).namespace
        async with self._lanes.hold(namespace.lane()):
            record = await self._visible(owned)
            _check_version(record, if_version)
            moment = self._clock()
            fields = {
                "status": "deleted",
                "valid_to": record.item.valid_to or max(moment, record.item.valid_from),
                "updated_at": moment,
                "expires_at": moment + self._deleted_life,
            }
            deleted = replace(record, item=record.item.model_copy(update=fields), ended_before=record.item.expires_at)
            await self._rewrite(deleted.decided("deleted", moment))

    async def history(self, owned: Owned) -> History:
        """All versions of the item's fact in event time, oldest first; deleted ones until they are removed."""
        versions = await fact_of(self._vectors, await stored(self._vectors, owned))
        versions.sort(key=lambda version: (version.item.valid_from, version.item.version))
        return History(versions=tuple(version.as_history() for version in versions))

    async def page(self, namespace: Namespace, *, view: View, limit: int, cursor: str | None) -> ItemPage:
        """A page in the order of ids, which writes do not disturb. Raises ``Unprocessable`` for a strange cursor."""
        if cursor is not None and not _is_uuid(cursor):
            raise Unprocessable("this cursor is not one that a page gave", param="cursor", code="invalid_cursor")
        where = all_of([within(namespace), view.condition(self._clock())])
        page = await self._vectors.scroll(where=where, limit=limit, start_id=cursor)
        items = tuple(from_payload(found.id, found.payload).item for found in page.found)
        return ItemPage(items=items, next_cursor=page.next_id)

    async def erase(self, namespace: Namespace) -> Erased:
        """Remove everything of the namespace, then look whether anything is left."""
        where = within(namespace)
        async with self._lanes.hold(namespace.lane()):
            count = await self._vectors.count(where=where)
            await self._vectors.delete(where=where)
            left = await self._vectors.count(where=where)
            if left:
                raise DependencyError(f"{left} of {count} memories are still there after their erasure")
            buffers = await self._buffers.erase(namespace)
        self._metrics.erased.labels(place="vectors").inc(count)
        self._metrics.erased.labels(place="buffers").inc(buffers)
        return Erased(vectors=count, buffers=buffers)

    async def remove_expired(self) -> int:
        """Remove what has expired, in all namespaces; how many there were."""
        where = TimeRange("expires_at", lte=self._clock())
        count = await self._vectors.count(where=where)
        if count:
            await self._vectors.delete(where=where)
            self._metrics.expired.inc(count)
        return count

    async def _visible(self, owned: Owned) -> Record:
        record = await stored(self._vectors, owned)
        if record.is_over(self._clock()):
            raise NotFound("there is no such memory", param="id")
        return record

    async def _rewrite(self, record: Record) -> None:
        """Store other fields under the vectors that the item has."""
        for old in await self._vectors.get([record.item.id], where=of_tenant(record.tenant)):
            await self._vectors.upsert([Point(old.id, old.dense, old.sparse, to_payload(record))])


async def stored(vectors: VectorStore, owned: Owned) -> Record:
    """The item's record, deleted and expired ones too. Raises ``NotFound``, also for another tenant's."""
    if _is_uuid(owned.item_id):
        where = all_of([of_tenant(owned.tenant), Ids((owned.item_id,))])
        page = await vectors.scroll(where=where, limit=1)
        if page.found:
            return from_payload(page.found[0].id, page.found[0].payload)
    raise NotFound("there is no such memory", param="id")


async def fact_of(vectors: VectorStore, record: Record) -> list[Record]:
    """All versions of the record's fact, deleted and expired ones too, in no order."""
    return await every_record(vectors, all_of([of_tenant(record.tenant), Equals("chain", record.chain)]))


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _check_version(record: Record, if_version: int | None) -> None:
    if if_version is not None and if_version != record.item.version:
        raise PreconditionFailed(f"the memory is at version {record.item.version}, not {if_version}")


def _patched_fields(patch: ItemPatch) -> dict[str, object]:
    """The fields that the patch names; only ``expires_at`` can be set to nothing."""
    fields: dict[str, object] = {}
    for name in patch.model_fields_set:
        value: object = getattr(patch, name)
        if value is not None or name == "expires_at":
            fields[name] = value
    if patch.memory is not None:
        fields["hash"] = content_hash(patch.memory)
    if patch.expires_at is not None:
        fields["expires_at"] = utc(patch.expires_at)
    return fields


def _edited(record: Record, fields: Mapping[str, object], *, number: int, moment: datetime) -> tuple[Record, Record]:
    """The former state under an id of its own, and the item with its new fields.

    A new text holds from the edit on. Other fields are no statement about time: the former state then ends
    where it began, so that no ``as_of`` finds it.
    """
    item = record.item
    since = max(moment, item.valid_from) if "memory" in fields else item.valid_from
    snapshot = snapshot_id(item.id, item.version)
    past = {"id": snapshot, "status": "archived", "valid_to": since, "updated_at": moment}
    present = {**fields, "version": number, "supersedes": snapshot, "valid_from": since, "updated_at": moment}
    before = replace(record, item=item.model_copy(update=past), writes=())
    after = replace(record, item=item.model_copy(update=present), confirmed_at=max(since, record.confirmed_at))
    return before.decided("overtaken", moment, other=item.id), after.decided("edited", moment, other=snapshot)
