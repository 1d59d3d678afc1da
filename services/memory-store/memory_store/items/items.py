"""Stored memories one by one and by namespace: read, edit, delete, history, list, erase, expire.

Also the users, agents and runs of whom anything is stored.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, cast

from memloop.wire.errors import Conflict, PreconditionFailed, TooLarge, Unavailable, Unprocessable
from memloop.wire.fields import key_of_text
from memloop.wire.memory import Erased, ItemPage, ItemPatch, MemoryItem, Namespace, Scope
from memloop.wire.store_requests import MAX_DEPTH, Entities, Entity, EntityType, History, Listing, StoreList
from memloop_state.store.erasures import Erasures
from memloop_state.store.tenants import Buffers, ChangeFeed
from memory_store.items.batch import points_of, updated_point
from memory_store.items.documents import ItemChanges, Record, View, every_record, from_payload, pages, within
from memory_store.items.guarded import by_tenant, erasure_changes, expired_changes, repeated_when_moved
from memory_store.items.identity import chain_id, check_metadata, content_hash, snapshot_id
from memory_store.items.tools import ItemTools, Owned, fact_of, is_uuid, no_such_memory, stored
from memory_store.times.reading import times_of
from memory_store.vectors.filters import Condition, Equals, OneOf, TimeRange, all_of, parse_filters, utc
from memory_store.vectors.port import Found

_MOST_ENTITIES: Final = 100_000
_FIELDS: Final[dict[EntityType, str]] = {"user": "user_id", "agent": "agent_id", "run": "run_id"}


class Items:
    """Everything about stored items that is not an add, a search or a transfer.

    ``deleted_life``: how long a deleted item stays in history before it is removed.
    """

    def __init__(
        self, tools: ItemTools, *, erasures: Erasures, buffers: Buffers, feed: ChangeFeed, deleted_life: timedelta
    ) -> None:
        self.tools = tools
        self._erasures = erasures
        self._buffers = buffers
        self._feed = feed
        self._deleted_life = deleted_life

    async def read(self, owned: Owned) -> MemoryItem:
        """One version, live or archived. Raises ``NotFound``: unknown, of another tenant, deleted or expired."""
        return (await self.tools.visible(owned)).item

    @repeated_when_moved
    async def edit(self, owned: Owned, patch: ItemPatch, *, if_version: int | None) -> MemoryItem:
        """Change a live item; it keeps its id, its former state goes into history.

        Raises ``NotFound``, ``PreconditionFailed`` (another version), ``Conflict`` (superseded, not editable) and
        ``Unprocessable`` (metadata that cannot be stored).
        """
        check_metadata(patch.metadata or {})
        namespace = (await self.tools.visible(owned)).namespace
        async with self.tools.locks.hold(namespace.lane()):
            begun = await self.tools.guarded.begin(namespace)
            record = await self.tools.visible(owned)
            _check_version(record, if_version)
            if record.item.status != "activated":
                raise Conflict("this version was superseded; only the live one can be edited", code="superseded")
            fields = _patched_fields(patch)
            if not fields:
                return record.item
            moment = self.tools.clock()
            before, after = _edited(record, fields, moment=moment)
            chains = (
                (after.chain, before.chain) if patch.expires_at else (after.chain,)
            )  # an end is the former states' too
            fact = all_of([within(namespace), OneOf("chain", chains)])
            versions = await every_record(self.tools.vectors, fact)
            after = after.with_item(version=1 + max(version.item.version for version in (record, *versions)))
            points = await points_of([before, after], self.tools.encoding)
            for each in versions:
                is_live = each.item.status == "activated" and not each.is_over(moment)
                if is_live and each.chain == after.chain != record.chain:  # another memory said this text until now
                    end = max(after.item.valid_from, each.item.valid_from)
                    ended = each.with_item(status="archived", valid_to=end, updated_at=moment)
                    overtaken = ended.decided("overtaken", moment, other=after.item.id)
                    points += await updated_point(overtaken, self.tools.vectors)
                elif each.item.status == "archived" and (ending := _ends_with(each, after)) is not each:
                    points += await updated_point(ending, self.tools.vectors)
            await self.tools.guarded.store(begun, points)
            return after.item

    @repeated_when_moved
    async def delete(self, owned: Owned, *, if_version: int | None) -> None:
        """Take one version out of every view but history. Raises ``NotFound`` and ``PreconditionFailed``."""
        namespace = (await self.tools.visible(owned)).namespace
        async with self.tools.locks.hold(namespace.lane()):
            begun = await self.tools.guarded.begin(namespace, adds=False)
            record = await self.tools.visible(owned)
            _check_version(record, if_version)
            moment = self.tools.clock()
            deleted = record.with_item(
                status="deleted",
                valid_to=record.item.valid_to or max(moment, record.item.valid_from),
                updated_at=moment,
                expires_at=min(filter(None, (moment + self._deleted_life, record.item.expires_at))),
            )
            deleted = replace(deleted, ended_before=record.item.expires_at).decided("deleted", moment)
            await self.tools.guarded.store(begun, await updated_point(deleted, self.tools.vectors))

    async def history(self, owned: Owned) -> History:
        """All versions of the item's fact in event time, oldest first; deleted ones until they are removed.

        Raises ``NotFound`` as a read does, but shows a deleted version.
        """
        moment = self.tools.clock()
        fact = await fact_of(self.tools.vectors, await stored(self.tools.vectors, owned))
        versions = [each for each in fact if each.item.expires_at is None or each.item.expires_at > moment]
        if not versions:
            raise no_such_memory()
        versions.sort(key=lambda version: (version.item.valid_from, version.item.version))
        return History(versions=tuple(version.as_history() for version in versions))

    async def page(self, namespace: Namespace, *, view: View, limit: int, cursor: str | None) -> ItemPage:
        """A page in the order of ids, which writes do not disturb. Raises ``Unprocessable`` for a strange cursor."""
        if cursor is not None and not is_uuid(cursor):
            raise Unprocessable("this cursor is not one that a page gave", param="cursor", code="invalid_cursor")
        where = all_of([within(namespace), view.condition(self.tools.clock())])
        page = await self.tools.vectors.scroll(where=where, limit=limit, start_id=cursor)
        items = tuple(from_payload(found.id, found.payload).item for found in page.found)
        return ItemPage(items=items, next_cursor=page.next_id)

    async def listing(self, request: StoreList) -> Listing:
        """Return the newest memories after the skipped ones. Raises ``Unprocessable`` for a wrong filter or a deep
        page.
        """
        last = request.skip + request.limit
        if last > MAX_DEPTH:
            raise Unprocessable(f"a listing reaches {MAX_DEPTH} memories; narrow it with a filter", param="page")
        user_filter = parse_filters(request.filters) if request.filters else None
        view = View(latest_only=request.latest_only)
        where = all_of([within(request.scope), view.condition(self.tools.clock()), user_filter])
        items = (await self._newest(where, last))[request.skip :]
        return Listing(items=tuple(items), total=await self.tools.vectors.count(where=where))

    async def _newest(self, where: Condition, limit: int) -> list[MemoryItem]:
        """Order by time, then by id: one add may hold many memories of the same time, and a page may end among them."""
        found = _items(await self.tools.vectors.newest(where=where, limit=limit))
        if len(found) < limit:
            return _sorted(found)
        oldest = min(item.created_at for item in found)
        newer = _sorted([item for item in found if item.created_at > oldest])
        same_time = all_of([where, TimeRange("created_at", gte=oldest, lte=oldest)])
        page = await self.tools.vectors.scroll(where=same_time, limit=limit - len(newer))
        return newer + _items(page.found)

    async def entities(self, scope: Scope) -> Entities:
        """List all ids with stored data, deleted memories and raw turns included. Raises ``TooLarge``."""
        entities: list[Entity] = []
        for kind, field in _FIELDS.items():
            known = await self.tools.vectors.values(field, where=within(scope), limit=_MOST_ENTITIES)
            if len(known) == _MOST_ENTITIES:
                raise TooLarge(f"there are more than {_MOST_ENTITIES} {kind}s to list", code="too_many_entities")
            shown = all_of([within(scope), View().condition(self.tools.clock())])
            counts = await self.tools.vectors.values(field, where=shown, limit=_MOST_ENTITIES)
            entities += [Entity(type=kind, id=name, memories=counts.get(name, 0)) for name in known]
        return Entities(entities=tuple(entities))

    @repeated_when_moved
    async def erase(self, namespace: Namespace, *, token: int | None = None) -> Erased:
        """Remove everything of the namespace, then look whether anything is left.

        Wins over every write that began before, at any store process. Raises ``Conflict`` on a stale fencing token.
        """
        async with self.tools.locks.hold(namespace.lane()), self._erasures.erasing(namespace, token):
            where = within(namespace)
            count = await self.tools.vectors.count(where=where)
            await self.tools.vectors.delete(where=where)
            left = await self.tools.vectors.count(where=where)
            if left:
                message = f"{left} of {count} memories are still there after their erasure: repeat it."
                raise Unavailable(message, retry_after_s=1.0)
            buffers = await self._buffers.erase(namespace)
            await self._feed.publish(by_tenant(erasure_changes(namespace, self.tools.clock())))
        self.tools.metrics.erased.labels(place="vectors").inc(count)
        self.tools.metrics.erased.labels(place="buffers").inc(buffers)
        return Erased(vectors=count, buffers=buffers)

    async def would_erase(self, namespace: Namespace) -> Erased:
        count = await self.tools.vectors.count(where=within(namespace))
        return Erased(vectors=count, buffers=await self._buffers.count(namespace), dry_run=True)

    async def remove_expired(self) -> int:
        """Removes expired memories of all namespaces; returns their number. Waits while files are packed."""
        moment = self.tools.clock()
        where = TimeRange("expires_at", lte=moment)
        async with self.tools.locks.hold():
            count = await self.tools.vectors.count(where=where)
            if count:
                async for page in pages(self.tools.vectors, all_of([where, Equals("status", "activated")])):
                    await self._feed.publish(by_tenant(expired_changes(page.found, moment)))
                await self.tools.vectors.delete(where=where)
                self.tools.metrics.expired.inc(count)
        return count


def _items(found: Sequence[Found]) -> list[MemoryItem]:
    return [from_payload(one.id, one.payload).item for one in found]


def _sorted(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    by_id = sorted(items, key=lambda item: item.id)
    return sorted(by_id, key=lambda item: item.created_at, reverse=True)


def _check_version(record: Record, if_version: int | None) -> None:
    if if_version is not None and if_version != record.item.version:
        raise PreconditionFailed(f"the memory is at version {record.item.version}, not {if_version}")


def _patched_fields(patch: ItemPatch) -> ItemChanges:
    """Returns the fields that the patch names; null unsets one that a memory need not have, and is else nothing."""
    named = {name: getattr(patch, name) for name in patch.model_fields_set}
    unset = {name for name in named if MemoryItem.model_fields[name].default is None}
    fields = cast(ItemChanges, {name: value for name, value in named.items() if value is not None or name in unset})
    if "memory" in fields:
        fields["feedback"] = None
    if patch.expires_at:
        fields["expires_at"] = utc(patch.expires_at)
    return fields


def _ends_with(former: Record, item: Record) -> Record:
    """Return a former state that is not found after the item, whose text it has, has expired."""
    end, known = item.item.expires_at, former.item.expires_at
    if former.item.hash != item.item.hash or end is None or (known is not None and known <= end):
        return former
    return former.with_item(expires_at=end)


def _edited(record: Record, fields: ItemChanges, *, moment: datetime) -> tuple[Record, Record]:
    """Returns the former state under an id of its own, and the item with its new fields and no new number yet.

    A new text holds from the edit on. Other fields are no statement about time: the former state then ends
    where it began, so that no ``as_of`` finds it. A memory that was added as a text is found by its new one, and its
    former states by its id: whoever adds the old text again adds another memory.
    """
    item = record.item
    since = max(moment, item.valid_from) if "memory" in fields else item.valid_from
    snapshot = snapshot_id(item.id, item.version)
    before = record.with_item(id=snapshot, status="archived", valid_to=since, updated_at=moment)
    if "memory" in fields:
        fields["times"] = times_of(fields["memory"], since, ())
        fields["hash"] = content_hash(fields["memory"], fields["times"])
    after = record.with_item(**fields).with_item(supersedes=snapshot, valid_from=since, updated_at=moment)
    if item.key == key_of_text(item.memory):
        before = replace(before, chain=item.id)
        after = after.with_item(key=key_of_text(after.item.memory))
        if item.memory_type != "RawTurn":
            chain = chain_id(record.namespace, item.memory_type, after.item.key, after.item.memory)
            after = replace(after, chain=chain, origin=record.origin or record.chain)
    before = replace(before, writes=(), origin=None)
    after = replace(after, confirmed_at=max(since, record.confirmed_at))
    before = _ends_with(before, after)
    return before.decided("overtaken", moment, other=item.id), after.decided("edited", moment, other=snapshot)
