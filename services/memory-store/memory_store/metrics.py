"""The store's metrics. No user's id or text is ever a label."""

from collections.abc import Generator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram

from memloop.service.tracing import span

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
        self.erased = Counter("memory_store_erased_total", "What erasures removed", ["place"], registry=registry)
        self.expired = Counter("memory_store_expired_total", "Memories removed at their end", registry=registry)

    @contextmanager
    def search_stage(self, stage: str) -> Generator[None]:
        """Time and trace a stage of a search."""
        with self.search_seconds.labels(stage=stage).time(), span(f"memory.search.{stage}"):
            yield
