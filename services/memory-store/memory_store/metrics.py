"""The store's metrics. No user's id or text is ever a label."""

from collections.abc import Generator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from memloop.service.tracing import span
from memory_store.copying import Progress

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """All of them, in the process's registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.search_seconds = Histogram(
            "memory_search_seconds", "Time of a search, by stage", ["stage"], registry=registry, buckets=_SECONDS
        )
        self.writes = Counter(
            "memory_store_writes_total", "Drafts, by outcome and deciding rule", ["outcome", "rule"], registry=registry
        )
        self.embed_seconds = Histogram(
            "memory_store_embed_seconds", "Time of a call of the embedder", registry=registry, buckets=_SECONDS
        )
        self.embed_texts = Histogram(
            "memory_store_embed_texts", "Texts per call of the embedder", registry=registry, buckets=_TEXTS
        )
        self.embed_cache = Counter(
            "memory_store_embed_cache_total",
            "Texts to embed, by whether their vector was kept",
            ["found"],
            registry=registry,
        )
        self.erased = Counter("memory_store_erased_total", "What erasures removed", ["place"], registry=registry)
        self.copies = Counter(
            "memory_store_copies_total", "Copies of the whole collection", ["kind", "status"], registry=registry
        )
        self._copied = Gauge("memory_store_copied_points", "Points that the running copy has done", registry=registry)
        self._to_copy = Gauge("memory_store_copy_points", "Points that the running copy has to do", registry=registry)
        self.expired = Counter("memory_store_expired_total", "Memories removed at their end", registry=registry)

    @contextmanager
    def search_stage(self, stage: str) -> Generator[None]:
        """Time and trace a stage of a search."""
        with self.search_seconds.labels(stage=stage).time(), span(f"memory.search.{stage}"):
            yield

    def watch_copy(self, progress: Progress) -> None:
        """Let the gauges follow the copy."""
        self._copied.set_function(lambda: progress.done)
        self._to_copy.set_function(lambda: progress.total)
