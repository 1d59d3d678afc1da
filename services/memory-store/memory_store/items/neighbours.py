"""Finds the live memories near drafts that are not stored yet."""

from collections.abc import Sequence

from memloop.wire.memory import (
    MemoryItem,
)
from memloop.wire.neighbours import Neighbours, StoreNeighbours
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import Clock, exactly_in, from_payload, now
from memory_store.items.identity import chain_id
from memory_store.vectors.filters import Condition, Equals, Not, OneOf, TimeRange, all_of
from memory_store.vectors.port import VectorStore


class Neighbourhoods:
    """Compares drafts with the live memories of exactly their namespace, turns left out."""

    def __init__(self, vectors: VectorStore, encoding: TextEncoding, *, clock: Clock = now) -> None:
        self._vectors = vectors
        self._encoding = encoding
        self._clock = clock

    async def of(self, request: StoreNeighbours) -> Neighbours:
        """Returns the neighbours of each draft. A draft whose own key and type are stored has none."""
        chains = [chain_id(request.namespace, draft.memory_type, draft.key) for draft in request.drafts]
        live = all_of([exactly_in(request.namespace), Equals("status", "activated"), self._readable()])
        known = await self._vectors.values("chain", where=all_of([live, OneOf("chain", tuple(chains))]), limit=100)
        others = all_of([live, Not(OneOf("chain", tuple(chains)))])
        new = [draft for draft, chain in zip(request.drafts, chains, strict=True) if chain not in known]
        vectors = iter(await self._encoding.documents([f"{draft.key}: {draft.value}" for draft in new]) if new else ())
        found = [() if chain in known else await self._near(next(vectors)[0], others, request) for chain in chains]
        return Neighbours(neighbours=tuple(found))

    def _readable(self) -> Condition:
        over = TimeRange("expires_at", lte=self._clock())
        return all_of([Not(OneOf("memory_type", ("RawTurn", "KeptTurn"))), Not(over)])

    async def _near(self, dense: Sequence[float], where: Condition, request: StoreNeighbours) -> tuple[MemoryItem, ...]:
        found = await self._vectors.nearest(tuple(dense), where=where, limit=request.top_k)
        return tuple(from_payload(one.id, one.payload).item for one in found if one.score >= request.at_least)
