"""Adding memories: one lane at a time, resolved, written in one operation, harmless when repeated."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memloop.wire.errors import Conflict, Unprocessable
from memloop.wire.memory import (
    BatchOutcome,
    BatchResult,
    MemoryDraft,
    Namespace,
    StoreAdd,
    StoreAddResult,
    Written,
)
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.batch import Batch, Context, Statement
from memory_store.items.conflicts import Change, Placement, Resolution, Rule, Version, mend, resolve
from memory_store.items.documents import Clock, Record, any_write, exactly_in, from_payload, now, of_tenant
from memory_store.items.identity import draft_digest
from memory_store.items.namespace_locks import Lanes
from memory_store.items.points import commit, embedded, upsert
from memory_store.metrics import Metrics
from memory_store.redis.fencing import Fence
from memory_store.vectors.filters import AnyOf, Condition, Equals, Not, OneOf, TimeRange, all_of, utc
from memory_store.vectors.metadata import check_metadata
from memory_store.vectors.port import VectorStore

_PAGE = 256
_NEIGHBOURS = 4


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
class _Asked:
    """An add that was let in, and what its drafts state."""

    add: StoreAdd
    statements: Sequence[Statement]


class Writer:
    """``POST /v1/items``."""

    def __init__(
        self,
        vectors: VectorStore,
        encoding: TextEncoding,
        *,
        lanes: Lanes,
        fence: Fence,
        policy: WritePolicy,
        metrics: Metrics,
        clock: Clock = now,
    ) -> None:
        self._vectors = vectors
        self._encoding = encoding
        self._lanes = lanes
        self._fence = fence
        self._policy = policy
        self._metrics = metrics
        self._clock = clock

    async def add(self, request: StoreAdd) -> StoreAddResult:
        """Resolve and store the drafts.

        Raises ``Conflict`` on a stale fencing token and ``Unprocessable`` for metadata that cannot be stored.
        """
        check_metadata(request.metadata)
        lane = request.namespace.lane()
        async with self._lanes.hold(lane):
            await self._admit(request)
            return await self._add(request, self._clock())

    async def add_batch(self, adds: Sequence[StoreAdd]) -> BatchResult:
        """Resolve the adds in their order, embed what is new together, and store all of it in one operation.

        An add that is refused is answered by its error and stores nothing; it does not keep the others from theirs.
        """
        async with contextlib.AsyncExitStack() as stack:
            for lane in sorted({add.namespace.lane() for add in adds}):
                await stack.enter_async_context(self._lanes.hold(lane))
            moment = self._clock()
            asked = [await self._let_in(add, moment) for add in adds]
            let_in = [one for one in asked if isinstance(one, _Asked)]
            known = await self._known(let_in)
            contexts = {one.add.namespace: self._context(one.add, None, moment) for one in let_in}
            batches = {namespace: Batch(context, known.get(namespace, ())) for namespace, context in contexts.items()}
            outcomes = [
                BatchOutcome(memories=await self._resolved(one, batches[one.add.namespace], moment))
                if isinstance(one, _Asked)
                else one
                for one in asked
            ]
            await commit(batches.values(), self._vectors, self._encoding)
        return BatchResult(results=tuple(outcomes))

    async def _let_in(self, add: StoreAdd, moment: datetime) -> _Asked | BatchOutcome:
        """The add, or why it is refused."""
        try:
            check_metadata(add.metadata)
            await self._admit(add)
        except (Conflict, Unprocessable) as error:
            return BatchOutcome(error=error.envelope().error)
        return self._asked(add, moment)

    async def _add(self, request: StoreAdd, written_at: datetime) -> StoreAddResult:
        asked = self._asked(request, written_at)
        known = await self._known([asked])
        batch = Batch(self._context(request, None, written_at), known.get(request.namespace, ()))
        results = await self._resolved(asked, batch, written_at)
        points = await embedded([batch], self._vectors, self._encoding)
        await self._admit(request)  # again: embedding takes time, in which the lane may have gone to another writer
        await upsert(points, self._vectors)
        return StoreAddResult(results=results)

    async def _admit(self, request: StoreAdd) -> None:
        if request.fencing_token is not None:
            await self._fence.admit(request.namespace.lane(), request.fencing_token)

    def _asked(self, add: StoreAdd, written_at: datetime) -> _Asked:
        writes = _write_names(add.event_id, add.drafts)
        statements = [
            Statement.of(draft, self._context(add, draft, written_at), write)
            for draft, write in zip(add.drafts, writes, strict=True)
        ]
        return _Asked(add, statements)

    async def _resolved(self, asked: _Asked, batch: Batch, written_at: datetime) -> tuple[Written, ...]:
        """What the drafts do to the batch, which is not stored yet."""
        written: list[Written] = []
        for statement in asked.statements:
            batch.context = self._context(asked.add, statement.draft, written_at)
            written.append(await self._write(statement, batch))
        return tuple(batch.current(one) for one in written)

    def _context(self, request: StoreAdd, draft: MemoryDraft | None, written_at: datetime) -> Context:
        said_at = utc(request.timestamp) if request.timestamp else None
        expires_at = utc(request.expires_at) if request.expires_at else None
        if expires_at is None and draft and draft.memory_type == "RawTurn":
            expires_at = written_at + self._policy.raw_turn_life
        return Context(
            namespace=request.namespace,
            stated_at=said_at or written_at,
            written_at=written_at,
            sources=request.sources,
            metadata=request.metadata,
            expires_at=expires_at,
            said_at=said_at,
        )

    async def _known(self, asked: Sequence[_Asked]) -> Mapping[Namespace, list[Record]]:
        """All versions of the facts that the drafts speak of, and what the events wrote before; one query a tenant."""
        statements: dict[str, list[Statement]] = defaultdict(list)
        for one in asked:
            statements[one.add.namespace.tenant] += one.statements
        known: dict[Namespace, list[Record]] = defaultdict(list)
        for tenant, stated in statements.items():
            for record in await every_record(self._vectors, _spoken_of(tenant, stated)):
                known[record.namespace].append(record)
        return known

    async def _write(self, statement: Statement, batch: Batch) -> Written:
        earlier = batch.earlier_outcome(statement.write)
        if earlier:
            return earlier
        resolution = await self._resolve(statement, batch)
        self._metrics.writes.labels(outcome=resolution.outcome, rule=resolution.rule).inc()
        return batch.apply(statement, resolution)

    async def _resolve(self, statement: Statement, batch: Batch) -> Resolution:
        fact = batch.fact(statement.chain)
        if statement.draft.memory_type == "RawTurn":
            return _resolve_raw(batch, fact)
        moment = batch.context.written_at
        batch.mend(mend(versions_of(fact, moment)))
        versions = versions_of(batch.fact(statement.chain), moment)
        resolution = resolve(statement.value_hash, batch.context.stated_at, versions)
        if resolution.rule == "new fact" and self._policy.near_duplicate_similarity is not None:
            duplicate = await self._near_duplicate(statement, batch, self._policy.near_duplicate_similarity)
            return duplicate or resolution
        return resolution

    async def _near_duplicate(self, statement: Statement, batch: Batch, similarity: float) -> Resolution | None:
        draft, namespace = statement.draft, batch.context.namespace
        text = f"{draft.key}: {draft.value}"
        dense, _ = await self._encoding.query(text)
        live = (Equals("status", "activated"), Equals("memory_type", draft.memory_type))
        unexpired = Not(TimeRange("expires_at", lte=batch.context.written_at))
        where = all_of([exactly_in(namespace), *live, unexpired])
        marked = self._encoding.marked_words(text)
        for found in await self._vectors.nearest(dense, where=where, limit=_NEIGHBOURS):
            record = from_payload(found.id, found.payload)
            if found.score >= similarity and self._encoding.marked_words(record.embedded_text) == marked:
                batch.add_known(record)
                return _touch("near duplicate", record, batch, similarity=found.score)
        return None


async def every_record(vectors: VectorStore, where: Condition) -> list[Record]:
    """All records that the condition allows, page by page."""
    records: list[Record] = []
    start_id: str | None = None
    while True:
        page = await vectors.scroll(where=where, limit=_PAGE, start_id=start_id)
        records.extend(from_payload(found.id, found.payload) for found in page.found)
        if page.next_id is None:
            return records
        start_id = page.next_id


def versions_of(fact: Sequence[Record], moment: datetime) -> list[Version]:
    """The versions that a new statement is compared with: those that are neither deleted nor expired."""
    return [record.as_version() for record in fact if not record.is_over(moment)]


def _spoken_of(tenant: str, statements: Sequence[Statement]) -> Condition:
    wanted: list[Condition] = [OneOf("chain", tuple({statement.chain for statement in statements}))]
    names = [statement.write for statement in statements if statement.write is not None]
    if names:
        wanted.append(OneOf("writes", any_write(names)))
    return all_of([of_tenant(tenant), AnyOf(tuple(wanted))])


def _touch(rule: Rule, record: Record, batch: Batch, *, similarity: float | None = None) -> Resolution:
    confirmed = Change(record.item.id, confirmed_at=max(record.confirmed_at, batch.context.stated_at))
    return Resolution("touched", rule, touched=record.item.id, changes=(confirmed,), similarity=similarity)


def _resolve_raw(batch: Batch, same: Sequence[Record]) -> Resolution:
    if same and not same[0].is_over(batch.context.written_at):
        return _touch("raw turn", same[0], batch)
    return Resolution("inserted", "raw turn", placed=Placement(batch.context.stated_at))


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
