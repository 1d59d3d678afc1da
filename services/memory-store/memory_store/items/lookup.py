"""Finds stored records: one by its id, all versions of a fact, what a namespace shows, the live ones near a draft."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memloop.wire.errors import NotFound
from memloop.wire.memory import (
    MemoryItem,
)
from memloop.wire.store_requests import Neighbours, StoreNeighbours
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import Clock, Record, exactly_in, from_payload, now, of_tenant, within
from memory_store.items.identity import chain_id
from memory_store.vectors.filters import AllOf, Condition, Equals, Ids, Not, OneOf, TimeRange, all_of, utc
from memory_store.vectors.port import VectorStore, pages


@dataclass(frozen=True, slots=True)
class View:
    """The visible memories of a namespace. Deleted and expired ones never are.

    ``as_of``: memories that held at that event time; without it ``latest_only`` shows only live versions.
    """

    latest_only: bool = True
    include_raw: bool = False
    as_of: datetime | None = None

    def condition(self, moment: datetime) -> AllOf:
        """Return the view's condition at an ingest time."""
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


@dataclass(frozen=True, slots=True)
class Owned:
    """An item's id and the tenant that asks for it."""

    tenant: str
    item_id: str


async def stored(vectors: VectorStore, owned: Owned) -> Record:
    """Returns the item's record, even if it is deleted or expired. Raises ``NotFound``, also for another tenant's."""
    if is_uuid(owned.item_id):
        where = all_of([of_tenant(owned.tenant), Ids((owned.item_id,))])
        page = await vectors.scroll(where=where, limit=1)
        if page.found:
            return from_payload(page.found[0].id, page.found[0].payload)
    raise no_such_memory()


def no_such_memory() -> NotFound:
    """Returns the error of an id that names no memory of the tenant, or none any more."""
    return NotFound("there is no such memory", param="id")


async def fact_of(vectors: VectorStore, record: Record) -> list[Record]:
    """Returns all versions of the record's fact, deleted and expired ones too, in no order."""
    return await every_record(vectors, all_of([within(record.namespace), Equals("chain", record.chain)]))


async def every_record(vectors: VectorStore, where: Condition) -> list[Record]:
    """Returns all records that the condition matches."""
    return [from_payload(one.id, one.payload) async for page in pages(vectors, where) for one in page.found]


def is_uuid(text: str) -> bool:
    """Return whether an item can have this id."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


class Neighbourhoods:
    """Compares drafts with the live memories of exactly their namespace, turns left out."""

    def __init__(self, vectors: VectorStore, encoding: TextEncoding, *, clock: Clock = now) -> None:
        self._vectors = vectors
        self._encoding = encoding
        self._clock = clock

    async def of(self, request: StoreNeighbours) -> Neighbours:
        """Returns the neighbours of each draft. A draft whose own key and type are stored has none."""
        chains = [chain_id(request.namespace, draft.memory_type, draft.key) for draft in request.drafts]
        over = TimeRange("expires_at", lte=self._clock())
        told = Not(OneOf("memory_type", ("RawTurn", "KeptTurn")))
        live = all_of([exactly_in(request.namespace), Equals("status", "activated"), told, Not(over)])
        known = await self._vectors.values("chain", where=all_of([live, OneOf("chain", tuple(chains))]), limit=100)
        others = all_of([live, Not(OneOf("chain", tuple(chains)))])
        new = [draft for draft, chain in zip(request.drafts, chains, strict=True) if chain not in known]
        vectors = iter(await self._encoding.documents([f"{draft.key}: {draft.value}" for draft in new]) if new else ())
        found = [() if chain in known else await self._near(next(vectors)[0], others, request) for chain in chains]
        return Neighbours(neighbours=tuple(found))

    async def _near(self, dense: Sequence[float], where: Condition, request: StoreNeighbours) -> tuple[MemoryItem, ...]:
        found = await self._vectors.nearest(tuple(dense), where=where, limit=request.top_k)
        return tuple(from_payload(one.id, one.payload).item for one in found if one.score >= request.at_least)
