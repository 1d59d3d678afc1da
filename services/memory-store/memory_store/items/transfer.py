"""Memories out of the store and into it, as lines without vectors."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from memloop.wire import fields
from memloop.wire.errors import Conflict, MemloopError, NotFound, Unprocessable
from memloop.wire.memory import MAX_TEXT_CHARS, Namespace, UserFields
from memloop.wire.store_requests import ExportPage, Imported, LineError, MemoryLine, StoreExport, StoreImport
from memory_store.items.batch import Batch, embedded
from memory_store.items.documents import Record, View, every_record, exactly_in, from_payload, within
from memory_store.items.guarded import repeated_when_moved
from memory_store.items.identity import chain_id, check_metadata, content_hash, imported_id, is_item_id
from memory_store.items.tools import ItemTools, Owned, recover
from memory_store.times.reading import times_of
from memory_store.vectors.filters import AnyOf, Ids, OneOf, all_of

_MAX_KEY_CHARS = 512


@dataclass(frozen=True, slots=True)
class _Read:
    """A line that can be imported."""

    number: int
    line: MemoryLine


async def export(tools: ItemTools, request: StoreExport) -> ExportPage:
    """A page of versions: history too, neither deleted nor expired ones."""
    view = View(latest_only=request.latest_only, include_raw=request.include_raw)
    where = all_of([within(request.scope), view.condition(tools.clock())])
    page = await tools.vectors.scroll(where=where, limit=request.limit, start_id=request.cursor)
    records = [from_payload(found.id, found.payload) for found in page.found]
    lines = tuple(map(_line_of, records))
    return ExportPage(lines=lines, next_cursor=page.next_id)


def _line_of(record: Record) -> MemoryLine:
    item = record.item
    by_key = item.memory_type == "RawTurn" or record.chain == chain_id(
        record.namespace, item.memory_type, item.key, item.memory
    )
    return MemoryLine(item=item, confirmed_at=record.confirmed_at, state_of=None if by_key else record.chain)


async def take(tools: ItemTools, request: StoreImport) -> Imported:
    """Store the lines that can be read, in lanes of their own users; the others are told by their numbers.

    Nothing is written outside of the tenant: a version keeps its id only where its namespace has it already (then it
    is left as it is, or its deletion taken back); any other gets one made of the namespace and its former id, the same
    at every import. Lines of a namespace that is erased meanwhile are refused.
    """
    read: dict[Namespace, list[_Read]] = defaultdict(list)
    errors: list[LineError] = []
    for numbered in request.lines:
        try:
            one = _Read(numbered.number, _parsed(numbered.text))
            read[one.line.item.namespace(request.tenant)].append(one)
        except MemloopError as error:
            errors.append(LineError(line=numbered.number, message=error.message))
    imported = unchanged = 0
    for namespace, lines in read.items():
        try:
            fresh, deleted = await _into(tools, namespace, lines, began=request.began)
        except Conflict as error:
            errors += [LineError(line=one.number, message=error.message) for one in lines]
            continue
        imported, unchanged = imported + fresh, unchanged + len(lines) - fresh - len(deleted)
        for number, item_id in deleted.items():
            try:
                is_back = (await recover(tools, Owned(request.tenant, item_id))).id == item_id
            except (NotFound, Conflict) as error:
                errors.append(LineError(line=number, message=f"it was deleted: {error.message}"))
            else:
                imported, unchanged = imported + is_back, unchanged + (not is_back)
    return Imported(imported=imported, unchanged=unchanged, failed=len(errors), errors=tuple(errors))


@repeated_when_moved
async def _into(
    tools: ItemTools, namespace: Namespace, lines: Sequence[_Read], *, began: int | None
) -> tuple[int, dict[int, str]]:
    """Store a namespace's lines; how many are new, and the ids of deleted versions by the numbers of their lines.

    Raises ``Conflict`` if it is erased meanwhile.
    """
    async with tools.locks.hold(namespace.lane()):
        begun = await tools.guarded.begin(namespace, began=began)
        # The id here of every id that the lines name
        others = {other for one in lines for other in (one.line.item.supersedes, one.line.state_of) if other}
        named = {one.line.item.id for one in lines} | others
        own = all_of([exactly_in(namespace), Ids(tuple(filter(is_item_id, named)))])
        page = await tools.vectors.scroll(where=own, limit=len(named))
        kept = {found.id for found in page.found}
        ids = {one: one if one in kept else imported_id(namespace, one) for one in named}
        records: dict[str, Record] = {}
        for one in lines:
            item, item_id = one.line.item, ids[one.line.item.id]
            if item.memory_type == "RawTurn":
                chain = item_id
            elif one.line.state_of is not None:
                chain = ids[one.line.state_of]
            else:
                chain = chain_id(namespace, item.memory_type, item.key, item.memory)
            times = item.times or times_of(item.memory, item.valid_from, item.sources)
            former = Record(namespace.tenant, item, chain, confirmed_at=one.line.confirmed_at)
            records[item_id] = former.with_item(
                id=item_id,
                supersedes=ids[item.supersedes] if item.supersedes else None,
                status="archived" if item.valid_to else "activated",
                hash=content_hash(item.memory, times),
                times=times,
            )
        known = await _known(tools, namespace, list(records.values()))
        batch = Batch(namespace, known, written_at=tools.clock())
        fresh = [record for item_id, record in records.items() if item_id not in batch.records]
        for record in fresh:
            batch.add(record)
        for chain in {record.chain for record in fresh if record.item.memory_type != "RawTurn"}:
            batch.repair(chain)
        await tools.guarded.store(begun, await embedded([batch], tools.vectors, tools.encoding))
        numbers = {ids[one.line.item.id]: one.number for one in lines}
        return len(fresh), {numbers[one]: one for one in records if batch.records[one].item.status == "deleted"}


async def _known(tools: ItemTools, namespace: Namespace, records: Sequence[Record]) -> list[Record]:
    """What the namespace has under the same ids, and the other versions of the facts."""
    facts = OneOf("chain", tuple({record.chain for record in records}))
    same = Ids(tuple(record.item.id for record in records))
    return await every_record(tools.vectors, all_of([exactly_in(namespace), AnyOf((facts, same))]))


def _parsed(text: str) -> MemoryLine:
    """Raises ``Unprocessable`` with the reason, which never holds the text itself."""
    try:
        line = MemoryLine.model_validate_json(text)
        item = line.item
        UserFields.model_validate(item.model_dump(include={*UserFields.model_fields}))
        fields.check_metadata(item.metadata)
        times = item.valid_from, item.valid_to, item.created_at, item.updated_at, item.expires_at
        for moment in filter(None, (line.confirmed_at, *times)):
            fields.check_moment(moment)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Unprocessable(f"{where}: {first['msg']}" if where else first["msg"]) from error
    except ValueError as error:
        raise Unprocessable(f"item: {error}") from error
    check_metadata(item.metadata)
    if item.status == "deleted":
        raise Unprocessable("item.status: a deleted memory is not imported")
    if not 1 <= len(item.memory) <= MAX_TEXT_CHARS or not 1 <= len(item.key) <= _MAX_KEY_CHARS:
        raise Unprocessable("item: memory or key is empty or too long")
    if any(time is not None and time.tzinfo is None for time in times):
        raise Unprocessable("item: every time needs its zone")
    if item.valid_to is not None and item.valid_to < item.valid_from:
        raise Unprocessable("item.valid_to: before valid_from")
    if not 1 <= item.version < 2**31:
        raise Unprocessable("item.version: not a version")
    return line
