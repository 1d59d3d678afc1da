"""Adding memories: one namespace at a time, resolved, stored in one operation, harmless when repeated."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from typing import TypeAlias

from memloop.chores import Groups, computed
from memloop.wire.errors import DependencyError, MemloopError, Unavailable, Unprocessable
from memloop.wire.memory import BatchOutcome, BatchResult, MemoryItem, Namespace, StoreAdd, StoreAddResult, Written
from memloop.wire.store_requests import Neighbours, StoreNeighbours
from memloop_state.store.erasures import Begun, Claim, Refusal
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.batch import Batch, embedded
from memory_store.items.documents import Record, any_write, every_record, exactly_in, from_payload, of_tenant
from memory_store.items.guarded import Tries, as_one_write, repeated_when_moved, tries
from memory_store.items.identity import chain_id, check_metadata
from memory_store.items.statements import (
    Change,
    Placement,
    Resolution,
    Rule,
    Statement,
    WritePolicy,
    resolve,
    statements_of,
)
from memory_store.items.tools import ItemTools
from memory_store.vectors.filters import AnyOf, Condition, Equals, Not, OneOf, TimeRange, all_of
from memory_store.vectors.port import Collection, Found

_NEIGHBOURS = 4


@dataclass(frozen=True, slots=True)
class Resolver:
    """Applies the rules of ``statements`` and, where ``similarity`` is set, the one of near duplicates."""

    vectors: Collection
    encoding: TextEncoding
    similarity: float | None

    async def resolve(self, statement: Statement, batch: Batch) -> Resolution:
        """Returns the resolution of the statement against the batch, which mends the fact first."""
        if statement.is_raw:
            same = batch.records.fact(statement.chain)
            if same and not same[0].is_over(statement.written_at):
                return _touch("raw turn", same[0], statement.stated_at)
            return Resolution("inserted", "raw turn", placed=Placement(statement.stated_at))
        batch.repair(statement.chain)
        versions = batch.records.versions(statement.chain)
        resolution = resolve(statement.value_hash, statement.stated_at, versions)
        if resolution.rule == "new fact" and self.similarity is not None:
            return await self._near_duplicate(statement, batch, self.similarity) or resolution
        return resolution

    async def _near_duplicate(self, statement: Statement, batch: Batch, similarity: float) -> Resolution | None:
        text = f"{statement.draft.key}: {statement.draft.value}"
        [dense] = await self.encoding.dense([text])
        marked = self.encoding.marked_words(text)
        # Live memories of the statement's namespace and type
        live = (Equals("status", "activated"), Equals("memory_type", statement.draft.memory_type))
        for found in await self.vectors.nearest(
            dense,
            where=all_of(
                [exactly_in(statement.namespace), *live, Not(TimeRange("expires_at", lte=statement.written_at))]
            ),
            limit=_NEIGHBOURS,
        ):
            record = from_payload(found.id, found.payload)
            if found.score >= similarity and self.encoding.marked_words(record.embedded_text) == marked:
                batch.add_known(record)
                return _touch("near duplicate", batch.records[found.id], statement.stated_at, similarity=found.score)
        return None


def _touch(rule: Rule, record: Record, stated_at: datetime, *, similarity: float | None = None) -> Resolution:
    confirmed = Change(record.item.id, confirmed_at=max(record.confirmed_at, stated_at))
    return Resolution("touched", rule, touched=record.item.id, changes=(confirmed,), similarity=similarity)


_STATEMENTS_PER_TURN = 64
"""Statements that are resolved before other requests get a turn on the event loop."""
_GROUPS = 3
"""Of adds that are written together: one is stored while the next is embedded and the third is resolved."""
_MOST_TOGETHER = 16
_SHORT_CHARS = 4096
_SHORT_DRAFTS = 4

_Result: TypeAlias = tuple[Written, ...] | Refusal


@dataclass(frozen=True, slots=True)
class _Single:
    """An add that may be written together with others, and the tries of its write."""

    request: StoreAdd
    tries: Tries


class Writer:
    """``POST /v1/items`` and ``/v1/items/batch``, and ``/v1/items/neighbours``, which a writer asks for before.

    ``in_groups``: short adds that arrive at the same time are written as one. That is for a vector store in this
    process, which takes a write whole or not at all: a Qdrant server has places of which one may fail or be slow.
    """

    def __init__(self, tools: ItemTools, policy: WritePolicy, *, in_groups: bool = False) -> None:
        grouped = in_groups and policy.near_duplicate_similarity is None
        self._groups = Groups(self._write_together, under_way=_GROUPS, most=_MOST_TOGETHER) if grouped else None
        self._resolver = Resolver(tools.vectors, tools.encoding, policy.near_duplicate_similarity)
        self._tools = tools
        self._policy = policy

    @repeated_when_moved
    async def add(self, request: StoreAdd) -> StoreAddResult:
        """Resolves and stores the drafts, together with those of other lanes that arrive meanwhile.

        Raises ``Conflict`` on a stale fencing token, or if the namespace was erased meanwhile, and ``Unprocessable``
        for metadata that cannot be stored.
        """
        check_metadata(request.metadata)
        async with self._tools.locks.hold(request.namespace.lane()):
            # Whether others need not wait for its embedding
            if self._groups is not None and (
                len(request.drafts) <= _SHORT_DRAFTS
                and sum(len(draft.value) for draft in request.drafts) <= _SHORT_CHARS
            ):
                written = await self._groups.join(_Single(request, tries()))
            else:
                [written] = await self._write([request])
        if not isinstance(written, tuple):
            raise written
        return StoreAddResult(results=written)

    async def _write_together(self, singles: "Sequence[_Single]") -> Sequence[_Result | Exception]:
        """Writes a group; one by one if the vector store or the model fails, which may be due to one of them."""
        try:
            with as_one_write([single.tries for single in singles]):
                return await self._write([single.request for single in singles])
        except Unavailable:
            raise
        except DependencyError:
            if len(singles) == 1:
                raise
            outcomes: list[_Result | Exception] = []
            for single in singles:
                try:
                    outcomes += await self._write_together([single])
                except MemloopError as error:
                    outcomes.append(error)
            return outcomes

    @repeated_when_moved
    async def add_batch(self, adds: Sequence[StoreAdd], *, began: int | None = None) -> BatchResult:
        """Resolves the adds in their order, embeds new memories together, and stores all of it in one operation.

        A refused add returns its error and stores nothing; the other adds are stored all the same. ``began``: see
        ``StoreBatch``.
        """
        wrong: list[Unprocessable | None] = []
        for add in adds:
            try:
                check_metadata(add.metadata)
            except Unprocessable as error:
                wrong.append(error)
            else:
                wrong.append(None)
        accepted = [add for add, problem in zip(adds, wrong, strict=True) if problem is None]
        async with self._tools.locks.hold(*(add.namespace.lane() for add in accepted)):
            written = iter(await self._write(accepted, began=began))
        results = (problem or next(written) for problem in wrong)
        return BatchResult(
            results=tuple(
                BatchOutcome(memories=one) if isinstance(one, tuple) else BatchOutcome(error=one.envelope().error)
                for one in results
            )
        )

    async def neighbours(self, request: StoreNeighbours) -> Neighbours:
        """Returns the live memories of exactly the namespace that are near each draft, turns left out.

        A draft whose own key and type are stored has none.
        """
        chains = tuple(
            chain_id(request.namespace, draft.memory_type, draft.key, draft.value) for draft in request.drafts
        )
        over = TimeRange("expires_at", lte=self._tools.clock())
        told = Not(OneOf("memory_type", ("RawTurn", "KeptTurn")))
        live = all_of([exactly_in(request.namespace), Equals("status", "activated"), told, Not(over)])
        known = await self._tools.vectors.values("chain", where=all_of([live, OneOf("chain", chains)]), limit=100)
        others = all_of([live, Not(OneOf("chain", chains))])
        new = [draft for draft, chain in zip(request.drafts, chains, strict=True) if chain not in known]
        vectors = iter(
            await self._tools.encoding.documents([f"{draft.key}: {draft.value}" for draft in new]) if new else ()
        )
        neighbours: list[tuple[MemoryItem, ...]] = []
        for chain in chains:
            near: Sequence[Found] = ()
            if chain not in known:
                near = await self._tools.vectors.nearest(next(vectors)[0], where=others, limit=request.top_k)
            close = [one for one in near if one.score >= request.at_least]
            neighbours.append(tuple(from_payload(one.id, one.payload).item for one in close))
        return Neighbours(neighbours=tuple(neighbours))

    async def _write(self, adds: Sequence[StoreAdd], *, began: int | None = None) -> Sequence[_Result]:
        """Returns what became of each add."""
        claims = [Claim(add.namespace, add.fencing_token, began) for add in adds]
        each = list(dict.fromkeys(claims))
        answers = dict(zip(each, await self._tools.guarded.begin_all(each), strict=True))
        let_in = [add for add, claim in zip(adds, claims, strict=True) if isinstance(answers[claim], Begun)]
        moment = self._tools.clock()
        arrivals = count()
        reading = partial(statements_of, written_at=moment, policy=self._policy, arrivals=arrivals)
        chars = sum(len(draft.value) for add in let_in for draft in add.drafts)
        stated = await computed(lambda: [reading(add) for add in let_in], chars=chars)  # it reads their texts for times
        known = await self._known([statement for statements in stated for statement in statements])
        batches = {
            add.namespace: Batch(add.namespace, known.get(add.namespace, ()), written_at=moment) for add in let_in
        }
        resolutions: list[Resolution] = []
        numbers = count(1)
        outcomes = [
            await self._applied(statements, batches[add.namespace], resolutions, numbers)
            for add, statements in zip(let_in, stated, strict=True)
        ]
        points = await embedded(batches.values(), self._tools.vectors, self._tools.encoding)
        begun = [answer for answer in answers.values() if isinstance(answer, Begun)]
        refused = await self._tools.guarded.store_all(begun, points)
        for resolution in resolutions:
            self._tools.metrics.writes.labels(outcome=resolution.outcome, rule=resolution.rule).inc()
        stored = iter([refused.get(add.namespace, one) for add, one in zip(let_in, outcomes, strict=True)])
        return [next(stored) if isinstance(answer := answers[claim], Begun) else answer for claim in claims]

    async def _known(self, statements: Iterable[Statement]) -> Mapping[Namespace, Sequence[Record]]:
        """Loads all versions of the stated facts and what the events wrote before: one query per tenant."""
        by_tenant: dict[str, list[Statement]] = defaultdict(list)
        for statement in statements:
            by_tenant[statement.namespace.tenant].append(statement)
        known: dict[Namespace, list[Record]] = defaultdict(list)
        for tenant, stated in by_tenant.items():
            wanted: list[Condition] = [OneOf("chain", tuple({statement.chain for statement in stated}))]
            names = [statement.write for statement in stated if statement.write is not None]
            if names:
                wanted.append(OneOf("writes", any_write(names)))
            users = OneOf("user_id", tuple({statement.namespace.user_id for statement in stated}))
            for record in await every_record(
                self._tools.vectors, all_of([of_tenant(tenant), users, AnyOf(tuple(wanted))])
            ):
                known[record.namespace].append(record)
        return known

    async def _applied(
        self, statements: Sequence[Statement], batch: Batch, resolutions: list[Resolution], numbers: Iterator[int]
    ) -> tuple[Written, ...]:
        """Applies the statements to the batch, which is not stored yet."""
        written: list[Written] = []
        for statement, number in zip(statements, numbers, strict=False):
            if number % _STATEMENTS_PER_TURN == 0:
                await asyncio.sleep(0)
            if (earlier := batch.records.earlier_outcome(statement.write)) is not None:
                written.append(earlier)
                continue
            resolutions.append(await self._resolver.resolve(statement, batch))
            written.append(batch.apply(statement, resolutions[-1]))
        return tuple(batch.current(one) for one in written)
