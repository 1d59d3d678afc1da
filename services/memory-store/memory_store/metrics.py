"""The store's metrics. No user's id or text is ever a label."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from memloop.wire.feedback import Verdict
from memloop.wire.quality import Suspicion

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """All of them, in the process's registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        seconds = partial(Histogram, registry=registry, buckets=_SECONDS)
        self.request_seconds = seconds("memory_store_request_seconds", "Time of a request", ["route", "code"])
        self.search_seconds = seconds("memory_search_seconds", "Time of a search, by stage", ["stage"])
        self.searches_degraded = counter(
            "memory_store_searches_degraded_total", "Searches that did without a model that failed", ["model"]
        )
        self.writes = counter("memory_store_writes_total", "Drafts, by outcome and deciding rule", ["outcome", "rule"])
        self.embed_seconds = seconds("memory_store_embed_seconds", "Time of a call of the embedder")
        self.embed_texts = Histogram(
            "memory_store_embed_texts", "Texts per call of the embedder", buckets=_TEXTS, registry=registry
        )
        self.embed_waiting = gauge("memory_store_embed_waiting_texts", "Texts that wait for their embedding")
        self.embed_refused = counter("memory_store_embed_refused_total", "Texts turned away because too many waited")
        self.embed_cache = counter(
            "memory_store_embed_cache_total", "Texts to embed, by whether their vector was kept", ["found"]
        )
        self.erased = counter("memory_store_erased_total", "What erasures removed", ["place"])
        self.feedback = counter("memory_store_feedback_total", "Verdicts of clients on memories", ["verdict"])
        self.audited = counter(
            "memory_store_audited_memories_total",
            "Memories that audits examined, and those under each suspicion",
            ["found"],
        )
        self.copies = counter("memory_store_copies_total", "Copies of the whole collection", ["kind", "status"])
        self._copied = gauge("memory_store_copied_points", "Points that the running copy has done")
        self._to_copy = gauge("memory_store_copy_points", "Points that the running copy has to do")
        self.expired = counter("memory_store_expired_total", "Memories removed at their end")
        self.flush_seconds = seconds("memory_store_flush_seconds", "Time of a flush of Qdrant Edge")
        self.flush_failed = counter("memory_store_flush_failed_total", "Flushes of Qdrant Edge that failed")
        self._disk_full = gauge("memory_store_disk_full", "1 while new memories are refused for want of disk space")
        # A series that first appears with its first event hides that event from `rate`
        for found in ("hit", "miss"):
            self.embed_cache.labels(found)
        for model in ("embedding", "reranking"):
            self.searches_degraded.labels(model)
        for verdict in (*get_args(Verdict), "withdrawn"):
            self.feedback.labels(verdict)
        for found in ("memories", *get_args(Suspicion)):
            self.audited.labels(found)
        for place in ("vectors", "buffers"):
            self.erased.labels(place)
        for kind in ("reembed", "flush"):
            for status in ("completed", "failed"):
                self.copies.labels(kind, status)

    @contextmanager
    def flushing(self) -> Generator[None]:
        with self.flush_failed.count_exceptions(), self.flush_seconds.time():
            yield

    def watch_room(self, full: Callable[[], bool]) -> None:
        """Points the gauge at the disk of the vectors."""
        self._disk_full.set_function(full)

    def watch_copy(self, *, done: Callable[[], float], total: Callable[[], float]) -> None:
        """Points the gauges at the running copy."""
        self._copied.set_function(done)
        self._to_copy.set_function(total)
