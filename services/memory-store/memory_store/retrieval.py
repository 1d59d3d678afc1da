"""Hybrid search: dense and BM25 candidates, fused by rank inside the vector store."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memloop.chunking import EstimatingSplitter
from memloop.wire.memory import SearchHit, SearchOptions, SearchResult, StoreSearch
from memory_store.documents import Clock, from_payload, now, of_tenant, within
from memory_store.encoding import TextEncoding
from memory_store.filters import AllOf, Condition, Equals, Not, TimeRange, all_of, parse_filters, utc
from memory_store.metrics import Metrics
from memory_store.vectors.port import Found, Hybrid, VectorStore

_MIN_DEPTH = 50
_DEPTH_PER_HIT = 4


@dataclass(frozen=True, slots=True)
class View:
    """Which of a namespace's memories can be seen. Deleted and expired ones never can.

    ``as_of``: what held at that event time; without it ``latest_only`` shows only live versions.
    """

    latest_only: bool = True
    include_raw: bool = False
    as_of: datetime | None = None

    def condition(self, moment: datetime) -> AllOf:
        """The view at an ingest time."""
        return all_of(
            [
                Not(TimeRange("expires_at", lte=moment)),
                self._status(),
                None if self.include_raw else Not(Equals("memory_type", "RawTurn")),
                *self._validity(),
            ]
        )

    def _status(self) -> Condition:
        if self.latest_only and self.as_of is None:
            return Equals("status", "activated")
        return Not(Equals("status", "deleted"))

    def _validity(self) -> tuple[Condition, ...]:
        if self.as_of is None:
            return ()
        begun = TimeRange("valid_from", lte=utc(self.as_of))
        not_over = Not(TimeRange("valid_to", lte=utc(self.as_of)))
        return (begun, not_over) if self.latest_only else (begun,)


class Retrieval:
    """``POST /v1/items/search``."""

    def __init__(self, vectors: VectorStore, encoding: TextEncoding, *, metrics: Metrics, clock: Clock = now) -> None:
        self._vectors = vectors
        self._encoding = encoding
        self._stage = metrics.search_stage
        self._splitter = EstimatingSplitter()
        self._clock = clock

    async def search(self, request: StoreSearch) -> SearchResult:
        """The best memories first.

        ``score`` is the fused rank score: 1.0 is first in both rankings, 0.5 first in one and absent from the other;
        ``threshold`` applies to it. ``max_tokens`` is spent best first, by a conservative estimate; a memory that
        does not fit is left out. Raises ``Unprocessable`` for a filter that cannot be understood.
        """
        with self._stage("total"):
            query = await self._query(request)
            with self._stage("vectors"):
                found = await self._vectors.search(query)
                breakdown = await self._breakdown(query) if request.explain else {}
        hits = [_hit(one, breakdown.get(one.id, {})) for one in found]
        return SearchResult(results=tuple(self._within_budget(request, hits)))

    async def _query(self, request: StoreSearch) -> Hybrid:
        user_filter = parse_filters(request.filters) if request.filters else None
        view = View(latest_only=request.latest_only, include_raw=request.include_raw, as_of=request.as_of)
        with self._stage("embed"):
            dense, sparse = await self._encoding.query(request.query)
        return Hybrid(
            where=all_of([within(request.namespace), view.condition(self._clock()), user_filter]),
            corpus=of_tenant(request.namespace.tenant),
            limit=request.top_k,
            depth=max(_MIN_DEPTH, _DEPTH_PER_HIT * request.top_k),
            dense=dense,
            sparse=sparse,
        )

    async def _breakdown(self, query: Hybrid) -> dict[str, dict[str, float]]:
        """Each candidate's rank (from 1) and score in either ranking."""
        parts: dict[str, dict[str, float]] = {}
        rankings = {"dense": replace(query, sparse=None, limit=query.depth)}
        if query.sparse:
            rankings["sparse"] = replace(query, dense=None, limit=query.depth)
        for name, ranking in rankings.items():
            for rank, found in enumerate(await self._vectors.search(ranking), start=1):
                parts.setdefault(found.id, {}).update({f"{name}_rank": float(rank), f"{name}_score": found.score})
        return parts

    def _within_budget(self, options: SearchOptions, hits: Sequence[SearchHit]) -> list[SearchHit]:
        chosen: list[SearchHit] = []
        left = options.max_tokens
        for hit in hits:
            if options.threshold is not None and hit.score < options.threshold:
                continue
            if left is not None:
                cost = self._splitter.count(hit.item.memory)
                if cost > left:
                    continue
                left -= cost
            chosen.append(hit)
        return chosen


def _hit(found: Found, breakdown: dict[str, float]) -> SearchHit:
    item = from_payload(found.id, found.payload).item
    return SearchHit(item=item, score=found.score, score_breakdown=breakdown)
