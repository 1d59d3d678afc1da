"""Every metric of the gateway and its worker, made in this one place. No label holds a user's id or text."""

from functools import lru_cache
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from memloop.wire.errors import MemloopError

_LATENCY_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_OVERHEAD_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Metrics:
    """The metrics of one process, registered in the registry that its ``/metrics`` serves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.request_seconds = Histogram(
            "gateway_request_seconds",
            "Whole time of a request, to the last byte.",
            ("route", "code"),
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.overhead_seconds = Histogram(
            "gateway_overhead_seconds",
            "Time of a request in which no engine worked on it.",
            ("route",),
            buckets=_OVERHEAD_S,
            registry=registry,
        )
        self.time_to_first_token_seconds = Histogram(
            "gateway_time_to_first_token_seconds",
            "From the request to the first streamed byte of the engine.",
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.token_usage = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of one engine call, as the engine counted them.",
            ("type", "operation"),
            buckets=tuple(float(4**power) for power in range(1, 11)),
            registry=registry,
        )
        self._token_usage_of = lru_cache(maxsize=64)(self.token_usage.labels)
        self._overhead_of = lru_cache(maxsize=64)(self.overhead_seconds.labels)
        self.memory_search_seconds = Histogram(
            "memory_search_seconds",
            "Time of a memory search.",
            ("stage",),
            buckets=_OVERHEAD_S,
            registry=registry,
        )
        self.memory_action = Counter("memory_action", "Decisions of the memory writer.", ("action",), registry=registry)
        self.memory_tool_parse = Counter(
            "memory_tool_parse", "How the memory writer's tool call was read.", ("path",), registry=registry
        )
        self.memory_queue_depth = Gauge("memory_queue_depth", "Memory writes that wait.", registry=registry)
        self.memory_oldest_job_seconds = Gauge(
            "memory_oldest_job_seconds", "Age of the oldest memory write that waits.", registry=registry
        )
        self.memory_dead_letters = Counter(
            "memory_dead_letters", "Jobs given up after their last attempt.", registry=registry
        )
        self.longread_chunks = Counter("longread_chunks", "Chunks read.", ("strategy",), registry=registry)
        self.longread_slips = Counter(
            "longread_slips", "Replies that fell short: empty, cut, or no verdict.", ("kind",), registry=registry
        )
        self.longread_active = Gauge("longread_active", "Long reads that run now.", registry=registry)
        self.longread_resumed = Counter(
            "longread_resumed", "Long reads taken up again after a worker was lost.", registry=registry
        )
        self.longread_chunk_seconds = Histogram(
            "longread_chunk_seconds", "From one chunk of a read to the next.", buckets=_LATENCY_S, registry=registry
        )
        self.longread_webhooks = Counter(
            "longread_webhooks", "Attempts to deliver a webhook, by outcome.", ("outcome",), registry=registry
        )
        self.upstream_abort = Counter(
            "upstream_abort", "Engine requests aborted because the client left.", registry=registry
        )
        self.upstream_fallback = Counter(
            "upstream_fallback",
            "Times that an engine could not take a request and the next one was asked.",
            registry=registry,
        )
        self.rate_limit_skipped = Counter(
            "rate_limit_skipped", "Requests that Redis could not count, let in all the same.", registry=registry
        )
        self.upstream_errors = Counter("upstream_errors", "Engine requests that failed.", ("kind",), registry=registry)

    def count_error(self, error: MemloopError) -> None:
        """Count a failed engine call by its kind."""
        self.upstream_errors.labels(type(error).__name__.lower()).inc()

    def count_tokens(self, kind: Literal["input", "output"], operation: str, tokens: int) -> None:
        """Count the tokens of one engine call."""
        self._token_usage_of(kind, operation).observe(tokens)

    def count_overhead(self, route: str, seconds: float) -> None:
        """One request's time in which no engine worked on it."""
        self._overhead_of(route).observe(seconds)
