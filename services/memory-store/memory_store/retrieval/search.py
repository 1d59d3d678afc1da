"""Search: dense and BM25 rankings in one round trip, fused; the best read, boosted, packed into a budget."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memloop.chunking import EstimatingSplitter
from memloop.wire.memory import SearchHit, SearchOptions, SearchResult, StoreSearch
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import Clock, from_payload, now, within
from memory_store.items.view import View
from memory_store.metrics import Metrics
from memory_store.retrieval.boosts import boost_dates, boost_neighbours, wanted_neighbours
from memory_store.retrieval.candidates import Candidate, fuse, ordered
from memory_store.retrieval.diversity import diversified
from memory_store.retrieval.rerank import Reranker
from memory_store.retrieval.tuning import Tuning
from memory_store.vectors.filters import Condition, Equals, Ids, OneOf, all_of, parse_filters, utc
from memory_store.vectors.port import SparseVector, VectorStore

_MIN_DEPTH = 50
_DEPTH_PER_HIT = 4


@dataclass(frozen=True, slots=True)
class _Query:
    """What is asked for; ``where`` can be seen, ``corpus`` counts the words, ``depth`` is read at most."""

    where: Condition
    corpus: Condition
    depth: int
    dense: tuple[float, ...]
    sparse: SparseVector


class Retrieval:
    """``POST /v1/items/search``. ``reranker`` reorders the best candidates, where a model is configured."""

    def __init__(
        self,
        vectors: VectorStore,
        encoding: TextEncoding,
        *,
        metrics: Metrics,
        clock: Clock = now,
        tuning: Tuning | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._vectors = vectors
        self._encoding = encoding
        self._stage = metrics.search_stage
        self._splitter = EstimatingSplitter()
        self._clock = clock
        self._tuning = tuning or Tuning()
        self._reranker = reranker

    async def search(self, request: StoreSearch) -> SearchResult:
        """The best memories first.

        ``score`` sums both rankings' shares and the boosts: 1.0 is first in both rankings;
        ``threshold`` applies to it. ``max_tokens`` is spent best first, by a conservative estimate; a memory that
        does not fit is left out. Raises ``Unprocessable`` for a filter that cannot be understood.
        """
        with self._stage("total"):
            query = await self._query(request)
            with self._stage("vectors"):
                candidates = await self._candidates(query)
            self._boost(candidates, request)
            best = self._in_order(candidates)
            if self._reranker is not None:
                with self._stage("rerank"):
                    best = await self._reranker.reordered(request.query, list(best))
        return SearchResult(results=tuple(self._packed(request, best)))

    async def _query(self, request: StoreSearch) -> _Query:
        user_filter = parse_filters(request.filters) if request.filters else None
        view = View(latest_only=request.latest_only, include_raw=request.include_raw, as_of=request.as_of)
        with self._stage("embed"):
            dense, sparse = await self._encoding.query(request.query)
        depth = max(_MIN_DEPTH, _DEPTH_PER_HIT * request.top_k)
        namespace = within(request.namespace)
        where = all_of([namespace, view.condition(self._clock()), user_filter])
        return _Query(where, corpus=namespace, depth=depth, dense=dense, sparse=sparse)

    async def _candidates(self, query: _Query) -> list[Candidate]:
        """Returns the best that the rankings find, and the raw turns beside the best of it."""
        queries = [query.dense, query.sparse] if query.sparse else [query.dense]
        rankings = await self._vectors.rank(queries, where=query.where, corpus=query.corpus, limit=query.depth)
        candidates = fuse(rankings[0], rankings[1] if query.sparse else (), self._tuning)
        return await self._with_neighbours(await self._read(ordered(candidates)[: query.depth], query), query)

    async def _read(self, candidates: Sequence[Candidate], query: _Query) -> list[Candidate]:
        """With their payloads; what has left the view since it was ranked is left out."""
        if not candidates:
            return []
        ids = Ids(tuple(one.id for one in candidates))
        page = await self._vectors.scroll(where=all_of([ids, query.where]), limit=len(candidates))
        payloads = {found.id: found.payload for found in page.found}
        for one in candidates:
            one.payload = payloads.get(one.id, one.payload)
        return [one for one in candidates if one.payload]

    async def _with_neighbours(self, candidates: list[Candidate], query: _Query) -> list[Candidate]:
        wanted = wanted_neighbours(candidates) if self._tuning.neighbours else ()
        if not wanted:
            return candidates
        beside = all_of([query.where, Equals("memory_type", "RawTurn"), OneOf("key", wanted)])
        page = await self._vectors.scroll(where=beside, limit=len(wanted))
        known = {one.id for one in candidates}
        return candidates + [Candidate(one.id, one.payload) for one in page.found if one.id not in known]

    def _boost(self, candidates: Sequence[Candidate], request: StoreSearch) -> None:
        """Neighbours last: a turn's neighbour gets a part of the date's boost too."""
        if self._tuning.date:
            boost_dates(candidates, request.query, self._tuning.date, asked_at=self._asked_at(request))
        if self._tuning.neighbours:
            boost_neighbours(candidates, self._tuning.neighbours)

    def _asked_at(self, request: StoreSearch) -> datetime:
        return utc(request.as_of) if request.as_of else self._clock()

    def _in_order(self, candidates: Sequence[Candidate]) -> Iterable[Candidate]:
        return diversified(candidates, self._tuning.diversity) if self._tuning.diversity else ordered(candidates)

    def _packed(self, options: SearchOptions, candidates: Iterable[Candidate]) -> list[SearchHit]:
        """At most ``top_k`` that reach the threshold and fit the budget."""
        chosen: list[SearchHit] = []
        left = options.max_tokens
        for one in candidates:
            if len(chosen) == options.top_k:
                break
            if options.threshold is not None and one.score < options.threshold:
                continue
            if left is not None:
                cost = self._splitter.count(one.text)
                if cost > left:
                    continue
                left -= cost
            chosen.append(_hit(one, explain=options.explain))
        return chosen


def _hit(one: Candidate, *, explain: bool) -> SearchHit:
    item = from_payload(one.id, one.payload).item
    return SearchHit(item=item, score=one.score, score_breakdown=one.found | one.shares if explain else {})
