"""Search: dense and BM25 rankings in one round trip, added up; the best read, boosted, packed into a budget.

Its routes, and that of comparing texts by the embedding model in service, are at the end.
"""

import logging
from collections.abc import Awaitable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from memloop.chores import beside
from memloop.chunking import EstimatingSplitter
from memloop.wire.errors import DependencyError, Unavailable
from memloop.wire.memory import NamedTime, PendingTurn, Scope, SearchHit, SearchOptions, SearchResult, StoreSearch
from memloop.wire.store_requests import Similarities, StoreSimilarities
from memloop_service import of_app
from memloop_service.tracing import span
from memloop_state.store.tenants import Buffers
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import Clock, View, from_payload, now, within
from memory_store.items.identity import possible_names, without_names
from memory_store.items.routes import BuffersDep, GateDep, store_router
from memory_store.metrics import Metrics
from memory_store.retrieval.relevance import (
    DECIMALS,
    NO_CONTEXTS,
    Candidate,
    Contexts,
    Relevance,
    Tuning,
    around,
    boost,
    contexts,
    feedback_in,
)
from memory_store.retrieval.rerank import Reranker
from memory_store.times.reading import asked_for
from memory_store.vectors.filters import AnyOf, Condition, Ids, NumberRange, OneOf, all_of, parse_filters, utc
from memory_store.vectors.port import Collection, Payload, Query, Ranked, SparseVector

_log = logging.getLogger(__name__)
_SPLITTER = EstimatingSplitter()
_MIN_DEPTH = 50
_DEPTH_PER_HIT = 4
_MIN_RANKED = 200
_PROMPTERS = 20
"""The number of best items around which turns are looked up."""
_MOST_PLACED = 1000
_MOST_NAMES = 16
_MOST_WRONG = 100
"""Memories that clients called wrong, in whose places a search reads further ones."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked for; ``where`` can be seen, ``corpus`` counts the words, ``depth`` is read at most.

    ``named``: the words of the question that name speakers; ``times``: those that it names. "What did I do last week"
    has no word in common with its answers, so that with a time all that is ranked is read. ``dense`` is None if the
    embedding model failed. ``explained``: the answer has the places in the rankings.
    """

    where: Condition
    corpus: Condition
    depth: int
    named: frozenset[str]
    times: Sequence[NamedTime]
    dense: tuple[float, ...] | None
    sparse: SparseVector
    explained: bool


@dataclass(frozen=True, slots=True)
class Retrieval:
    """``POST /v1/items/search``. ``reranker`` reorders the best candidates, where a model is configured."""

    vectors: Collection
    encoding: TextEncoding
    metrics: Metrics
    clock: Clock = now
    tuning: Tuning = Tuning()  # noqa: RUF009 - it is frozen
    reranker: Reranker | None = None

    @contextmanager
    def _stage(self, stage: str) -> Generator[None]:
        """Time and trace a stage of a search."""
        with self.metrics.search_seconds.labels(stage=stage).time(), span(f"memory.search.{stage}"):
            yield

    async def search(self, request: StoreSearch, *, after: Awaitable[object] | None = None) -> SearchResult:
        """The best memories first, as they are once ``after`` has ended: it may run while the query is embedded.

        ``score`` is the cosine plus the weighted BM25 score and the boosts; ``threshold`` applies to it.
        ``max_tokens`` is spent best first, by a conservative estimate; a memory that does not fit is left out. A model
        that fails is done without: the result is ``degraded``, and no ``threshold`` applies to the scores of words
        alone. Raises ``Unprocessable`` for a filter that cannot be understood.
        """
        with self._stage("total"):
            user_filter = parse_filters(request.filters) if request.filters else None
            view = View(latest_only=request.latest_only, include_raw=request.include_raw, as_of=request.as_of)
            namespace = within(request.namespace)
            where = all_of([namespace, view.condition(self.clock()), user_filter])
            named = await self._speakers(request.query, where)
            with self._stage("embed"):
                dense, sparse = await self.encoding.query(without_names(request.query, named))
            times = asked_for(request.query, self._asked_at(request)) if self.tuning.date else ()
            depth = max(_MIN_RANKED if times else _MIN_DEPTH, _DEPTH_PER_HIT * request.top_k)
            query = _Asked(
                where, namespace, depth, named=named, times=times, dense=dense, sparse=sparse, explained=request.explain
            )
            if after is not None:
                await after
            with self._stage("vectors"):
                candidates = await self._candidates(query)
            boost(candidates, self.tuning, named=query.named, times=query.times, asked_at=self._asked_at(request))
            best, judged = await self._reranked(request.query, ordered(candidates))
        by_words = query.dense is None
        if by_words:
            self.metrics.searches_degraded.labels("embedding").inc()
        options = request.model_copy(update={"threshold": None}) if by_words else request
        return SearchResult(results=tuple(self._packed(options, best)), degraded=by_words or not judged)

    async def _reranked(self, question: str, candidates: list[Candidate]) -> tuple[list[Candidate], bool]:
        """Returns the candidates, and whether the reranking model has judged them if there is one."""
        if self.reranker is None or not candidates:
            return candidates, True
        with self._stage("rerank"):
            try:
                return await self.reranker.reordered(question, candidates), True
            except DependencyError as error:
                self.metrics.searches_degraded.labels("reranking").inc()
                _log.warning("a search was not reranked: %s", error.message)
                return candidates, False

    async def _speakers(self, question: str, where: Condition) -> frozenset[str]:
        """Returns the words of the question that name a speaker of memories that can be seen."""
        words = possible_names(question) if self.tuning.speaker else ()
        if not words:
            return frozenset()
        spoken = all_of([where, OneOf("speaker", words)])
        known = await self.vectors.values("speaker", where=spoken, limit=_MOST_NAMES)
        return frozenset(words) & known.keys()

    async def _candidates(self, query: _Asked) -> list[Candidate]:
        """Returns the best by the rankings and by the turns around them."""
        by_meaning: list[Query] = [query.dense] if query.dense is not None else []
        by_words: list[Query] = [query.sparse] if query.sparse.indices else []
        rankings: Sequence[Sequence[Ranked]] = ()
        limit = max(_MIN_RANKED, query.depth)
        if queries := by_meaning + by_words:
            one_more = limit + 1  # to see whether there are more
            rankings = await self.vectors.rank(queries, where=query.where, corpus=query.corpus, limit=one_more)
        dense, sparse = rankings[: len(by_meaning)], rankings[len(by_meaning) :]
        relevance = Relevance(dense[0] if dense else (), sparse[0] if sparse else (), self.tuning, limit=limit)
        payloads = await self._read(relevance.best(_PROMPTERS, raised={}), query)
        context = await self._context(payloads, relevance, query)
        everything = relevance.best(query.depth + _MOST_WRONG, raised=context.total)
        best, spare = everything[: query.depth], everything[query.depth :]
        payloads |= await self._read([one for one in best if one not in payloads], query)
        if spare and (wrong := sum(map(is_wrong, payloads.values()))):
            more = spare[:wrong]
            payloads |= await self._read([one for one in more if one not in payloads], query)
            best += more
        shown = [one for one in best if one in payloads and not is_wrong(payloads[one])]
        candidates = [Candidate(one, payloads[one], {**relevance.shares(one), **context.shares(one)}) for one in shown]
        for one in candidates if query.explained else ():
            one.found |= relevance.found(one.id)
        return candidates

    async def _read(self, ids: Sequence[str], query: _Asked) -> dict[str, Payload]:
        """Returns the payloads in the order of the ids; what has left the view since it was ranked is left out."""
        if not ids:
            return {}
        page = await self.vectors.scroll(where=all_of([Ids(tuple(ids)), query.where]), limit=len(ids))
        payloads = {found.id: found.payload for found in page.found}
        return {one: payloads[one] for one in ids if one in payloads}

    async def _context(self, payloads: Mapping[str, Payload], relevance: Relevance, query: _Asked) -> Contexts:
        """Returns what the turns around them add to the best items and to the turns of the same sessions."""
        tuning = self.tuning
        prompters = [Candidate(one, payload) for one, payload in payloads.items() if not is_wrong(payload)]
        sessions = around(prompters) if tuning.beside or tuning.near or tuning.session else ()
        if not sessions:
            return NO_CONTEXTS
        placed = relevance.placed(sessions)
        if placed is None:
            in_sessions = AnyOf(tuple(NumberRange("place", gte=start, lte=end) for start, end in sessions))
            where = all_of([query.where, in_sessions])
            placed = await self.vectors.placed(where=where, limit=_MOST_PLACED)
        return contexts(placed, relevance.above_floor, tuning)

    def _asked_at(self, request: StoreSearch) -> datetime:
        return utc(request.as_of) if request.as_of else self.clock()

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
                cost = _SPLITTER.count(one.text)
                if cost > left:
                    continue
                left -= cost
            item = from_payload(one.id, one.payload).item
            chosen.append(
                SearchHit(item=item, score=one.score, score_breakdown=one.found | one.shares if options.explain else {})
            )
        return chosen


def is_wrong(payload: Payload) -> bool:
    """Returns whether a client called the memory wrong."""
    feedback = feedback_in(payload)
    return feedback is not None and feedback.verdict == "wrong"


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Returns the best first; equal scores fall by event time, the newest first, then by id.

    Scores are equal when they agree in six decimals, so that every vector store gives the same order.
    """
    return sorted(candidates, key=lambda one: (-round(one.score, DECIMALS), -one.said_at.timestamp(), one.id))


async def buffered_turns(buffers: Buffers, scope: Scope, moment: datetime) -> tuple[PendingTurn, ...] | None:
    """Return the scope's buffered turns that have not expired by then.

    Empty without a user, None while the state cannot be reached.
    """
    if scope.user_id is None:
        return ()
    try:
        page = await buffers.page(scope.tenant, scope.user_id)
    except Unavailable:
        return None
    return tuple(
        PendingTurn(
            status="buffered",
            event_id=buffer.event_id,
            role=turn.role,
            content=turn.content,
            timestamp=turn.timestamp or buffer.updated_at,
            user_id=space.user_id,
            agent_id=space.agent_id,
            run_id=space.run_id,
            name=turn.name,
        )
        for buffer in page.buffers
        if buffer.expires_at is None or utc(buffer.expires_at) > moment
        if scope.agent_id in (None, (space := buffer.namespace).agent_id) and scope.run_id in (None, space.run_id)
        for turn in buffer.turns
    )


router = store_router(tags=["items"])


@router.post("/items/search")
async def search(
    request: StoreSearch, retrieval: Annotated[Retrieval, of_app("retrieval")], gate: GateDep, buffers: BuffersDep
) -> SearchResult:
    async with gate.shared():  # waits while another collection is put in service
        if not request.include_buffered:
            return await retrieval.search(request)
        # before the memories: a turn leaves its buffer only after they are stored
        async with beside(buffered_turns(buffers, request.namespace, retrieval.clock())) as reading:
            found, turns = await retrieval.search(request, after=reading), await reading
        return found.model_copy(update={"pending": turns or (), "pending_complete": turns is not None})


@router.post("/similarities")
async def similarities(
    request: StoreSimilarities, encoding: Annotated[TextEncoding, of_app("encoding")]
) -> Similarities:
    texts = list(dict.fromkeys(text for each in request.comparisons for text in (each.statement, *each.passages)))
    vectors = dict(zip(texts, await encoding.dense(texts), strict=True))
    return Similarities(
        similarities=tuple(
            tuple(
                sum(a * b for a, b in zip(vectors[each.statement], vectors[passage], strict=True))
                for passage in each.passages
            )
            for each in request.comparisons
        )
    )
