"""The memory store's process: ``python -m memory_store.main``."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from memloop.chores import alongside
from memloop.wire.errors import MemloopError
from memloop_service import connects_by, create_app, new_registry, refuse_open_listen, run, start_tracing, watch_disk
from memloop_state.connecting import connect
from memloop_state.disk import rewrite_files
from memloop_state.link import CHECK, State, check
from memloop_state.store.erasures import Erasures
from memloop_state.store.service import ServiceRecord
from memloop_state.store.tenants import Buffers, ChangeFeed
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.embedding.port import EmbeddingModel
from memory_store.items import routes
from memory_store.items.documents import Clock, now
from memory_store.items.guarded import GuardedStore, NamespaceLocks
from memory_store.items.items import Items
from memory_store.items.statements import WritePolicy
from memory_store.items.tools import ItemTools
from memory_store.items.writing import Writer
from memory_store.metrics import Metrics
from memory_store.models.chosen import embedder_of, reranker_of, secret_of
from memory_store.quality import auditing
from memory_store.quality.auditing import Audits
from memory_store.retrieval import search
from memory_store.retrieval.rerank import Reranker
from memory_store.retrieval.search import Retrieval
from memory_store.settings import Settings
from memory_store.upkeep import routes as upkeep_routes
from memory_store.upkeep.jobs import Upkeep
from memory_store.upkeep.membership import Membership
from memory_store.vectors.live import SHARED, Gate, LiveCollection, kept_open
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.schema import CollectionSpec

_log = logging.getLogger(__name__)
ROUTERS = (routes.router, search.router, auditing.router, routes.buffers, routes.changes, upkeep_routes.router)


@dataclass(frozen=True, slots=True)
class Adapters:
    """The outside world of one process."""

    vectors: LiveCollection
    embedder: EmbeddingModel
    redis: State
    embedder_for: Callable[[str], EmbeddingModel] | None = None
    """Makes the embedder of another model, for a re-embedding; None where there is no other model."""
    reranker: Reranker | None = None


def build(
    settings: Settings, adapters: Adapters, registry: CollectorRegistry, metrics: Metrics, *, clock: Clock = now
) -> FastAPI:
    """Returns the app over the adapters; its lifespan opens and closes them."""
    key, vectors, gate = secret_of(settings.store_key), adapters.vectors, Gate()
    encoding = TextEncoding(adapters.embedder, Bm25(language=settings.bm25_language))
    record = ServiceRecord(adapters.redis, vectors.site)
    membership = Membership(vectors, encoding, record, gate=gate, embedder_for=adapters.embedder_for)
    buffers = Buffers(adapters.redis, max_turns=settings.buffer_max_turns)
    erasures = Erasures(adapters.redis, membership)
    feed = ChangeFeed(adapters.redis, most=settings.changes_most, keep_s=settings.changes_days * 86_400)
    guarded = GuardedStore(vectors, erasures, feed)
    tools = ItemTools(vectors, encoding, NamespaceLocks(gate), guarded, metrics, clock)
    deleted_life = timedelta(days=settings.deleted_days)
    items = Items(tools, erasures=erasures, buffers=buffers, feed=feed, deleted_life=deleted_life)
    policy = WritePolicy(
        raw_turn_life=timedelta(days=settings.raw_turn_days),
        near_duplicate_similarity=settings.near_duplicate_similarity,
    )
    upkeep = Upkeep(
        vectors,
        membership,
        gate=gate,
        embedder_for=adapters.embedder_for,
        rewrite_files=lambda: rewrite_files(adapters.redis),
        metrics=metrics,
        clock=clock,
    )

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        del app
        async with (
            opened(settings, adapters),
            membership.watching(),
            alongside(
                _repeat(feed.publish_noted, "changes of %d unfinished writes are published", 10.0),
                _repeat(guarded.settler.settle_some, "refused writes of %d users are settled", 2.0, vectors.opened),
                _repeat(items.remove_expired, "%d expired memories are removed", settings.sweep_s, vectors.opened),
            ),
        ):
            try:
                yield
            finally:
                await upkeep.close()

    app = create_app(
        "memory-store",
        settings=settings,
        routers=ROUTERS,
        readiness={CHECK: partial(check, adapters.redis), "vectors": vectors.ping},
        warnings={"vectors": vectors.warning},
        registry=registry,
        lifespan=lifespan,
        adopts_ids=True,
        has_keys=key is not None,
        request_seconds=metrics.request_seconds,
    )
    app.state.items, app.state.writer = items, Writer(tools, policy, in_groups=vectors.site != SHARED)
    app.state.retrieval = Retrieval(vectors, encoding, metrics, clock, reranker=adapters.reranker)
    app.state.audits = Audits(vectors, encoding, metrics, clock)
    app.state.key, app.state.gate, app.state.encoding = key, gate, encoding
    app.state.buffers, app.state.feed, app.state.upkeep = buffers, feed, upkeep
    return app


@contextlib.asynccontextmanager
async def opened(settings: Settings, adapters: Adapters) -> AsyncGenerator[None]:
    """The embedder loaded and probed, the collection that fits it open or awaited; all closed at the end."""
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(adapters.redis.aclose)
        stack.push_async_callback(adapters.embedder.close)
        if adapters.reranker is not None:
            stack.push_async_callback(adapters.reranker.close)
            await adapters.reranker.start()
        dimension = await adapters.embedder.start()
        spec = CollectionSpec(settings.embedding_model, dimension, start_empty=settings.embedding_start_empty)
        stack.push_async_callback(adapters.vectors.close)
        await stack.enter_async_context(kept_open(adapters.vectors, spec))
        yield


async def _repeat(
    chore: Callable[[], Awaitable[int]], done: str, every_s: float, opened: asyncio.Event | None = None
) -> None:
    """Run a chore for ever, once the vectors are open if it needs them; a failure is logged and tried again."""
    if opened is not None:
        await opened.wait()
    while True:
        try:
            if number := await chore():
                _log.info(done, number)
        except MemloopError as error:
            _log.warning("%s; tried again in %g s", error.message, every_s)
        await asyncio.sleep(every_s)


def adapters_of(settings: Settings, metrics: Metrics) -> Adapters:
    """The real adapters that the settings name; nothing is opened yet."""
    tls = connects_by(settings)
    return Adapters(
        vectors=_vectors(settings, metrics, tls),
        embedder=embedder_of(settings, metrics, settings.embedding_model, tls=tls),
        redis=connect(settings.redis_url, ack_copies=settings.redis_ack_copies, tls=tls),
        embedder_for=lambda model: embedder_of(settings, metrics, model, tls=tls),
        reranker=reranker_of(settings, tls=tls),
    )


def _vectors(settings: Settings, metrics: Metrics, tls: ssl.SSLContext | None) -> LiveCollection:
    if settings.qdrant_url is None:
        embedded = QdrantEdge(
            settings.data_dir,
            flush_s=settings.edge_flush_s,
            flushing=metrics.flushing,
            free_bytes=settings.edge_free_bytes,
        )
        metrics.watch_room(lambda: embedded.room.full)
        return embedded
    try:
        from memory_store.vectors.server_at import server_at
        from memory_store.vectors.server_setup import ShardConfig
    except ModuleNotFoundError as error:
        raise SystemExit(f"QDRANT_URL needs {error.name}: pip install 'memloop-store[qdrant]'") from error

    sharding = ShardConfig(settings.qdrant_shards, settings.qdrant_replicas, settings.qdrant_write_consistency)
    pems = {
        "root_certificates": settings.connect_ca,
        "certificate_chain": settings.connect_cert,
        "private_key": settings.connect_key or settings.connect_cert,
    }
    key, grpc_port = secret_of(settings.qdrant_api_key), settings.qdrant_grpc_port
    return server_at(settings.qdrant_urls, sharding, api_key=key, grpc_port=grpc_port, tls=tls, pems=pems)


def main() -> None:
    settings = Settings.read()
    refuse_open_listen(settings.host, has_keys=settings.store_key is not None)
    registry = new_registry()
    metrics = Metrics(registry)
    if settings.qdrant_url is None:
        watch_disk(registry, settings.data_dir)
    start_tracing("memory-store")
    run(build(settings, adapters_of(settings, metrics), registry, metrics), settings, drain_s=settings.drain_s)


if __name__ == "__main__":
    main()
