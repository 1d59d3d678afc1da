"""Defines every metric of the gateway and its worker. No label contains a user's id or text."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.http import Admission, Lane, Limit
from gateway.queue import Depth, QueuedBytes
from gateway.redis import RedisState
from memloop.loops.results import NO_DEGRADATIONS
from memloop.wire.errors import MemloopError
from memloop.wire.long_read import Strategy
from memloop.wire.memory import Action

_LATENCY_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_OVERHEAD_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Metrics:
    """The metrics of one process, registered in the registry that its ``/metrics`` serves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.request_seconds = Histogram(
            "gateway_request_seconds",
            "Total time of a request, to the last byte of the response.",
            ("route", "code"),
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.overhead_seconds = Histogram(
            "gateway_overhead_seconds",
            "Time of a request spent outside the engine.",
            ("route",),
            buckets=_OVERHEAD_S,
            registry=registry,
        )
        self.time_to_first_token_seconds = Histogram(
            "gateway_time_to_first_token_seconds",
            "Time from the request to the engine's first streamed byte.",
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.token_usage = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of one engine call, as reported by the engine.",
            ("type", "operation", "model"),
            buckets=tuple(float(4**power) for power in range(1, 11)),
            registry=registry,
        )
        self._token_usage_of = lru_cache(maxsize=256)(self.token_usage.labels)
        self._overhead_of = lru_cache(maxsize=64)(self.overhead_seconds.labels)
        self.memory_search_seconds = Histogram(
            "memory_search_seconds",
            "Duration of a memory search.",
            ("stage",),
            buckets=_OVERHEAD_S,
            registry=registry,
        )
        self.memory_action = Counter(
            "memory_action", "Decisions of the memory writer, by action.", ("action",), registry=registry
        )
        self.memory_tool_parse = Counter(
            "memory_tool_parse", "Memory writer tool calls, by the parser that read them.", ("path",), registry=registry
        )
        self.memory_queue_depth = Gauge("memory_queue_depth", "Memory writes not finished yet.", registry=registry)
        self.memory_oldest_job_seconds = Gauge(
            "memory_oldest_job_seconds", "Age of the oldest unfinished memory write.", registry=registry
        )
        self.job_queue_depth = Gauge("job_queue_depth", "Unfinished jobs of a queue.", ("queue",), registry=registry)
        self.job_queue_oldest_seconds = Gauge(
            "job_queue_oldest_seconds", "Age of a queue's oldest unfinished job.", ("queue",), registry=registry
        )
        self.job_queue_waiting_seconds = Gauge(
            "job_queue_waiting_seconds",
            "How long a queue's oldest ticket has waited for a worker.",
            ("queue",),
            registry=registry,
        )
        self.job_queue_tenants = Gauge(
            "job_queue_tenants", "Tenants of a queue with jobs that wait for a worker.", ("queue",), registry=registry
        )
        self.job_queued_bytes = Gauge(
            "job_queued_bytes", "Bytes that the unfinished jobs of all queues hold.", registry=registry
        )
        self.job_queued_bytes_largest_tenant = Gauge(
            "job_queued_bytes_largest_tenant", "Those of the tenant that holds the most.", registry=registry
        )
        self.job_dead_letters = Gauge(
            "job_dead_letters", "Dead letters of all queues, which wait for an operator.", registry=registry
        )
        self.redis_used_bytes = Gauge("jobs_redis_used_bytes", "Memory used by Redis.", registry=registry)
        self.redis_limit_bytes = Gauge("jobs_redis_limit_bytes", "Memory limit of Redis.", registry=registry)
        self.redis_durable = Gauge(
            "jobs_redis_durable",
            "1 if Redis writes an append-only file and its last write succeeded.",
            registry=registry,
        )
        self.memory_dead_letters = Counter(
            "memory_dead_letters", "Memory writes that became dead letters.", registry=registry
        )
        self.memory_writes_refused = Counter(
            "memory_writes_refused",
            "Attempts of memory writes that the engine rejected, by HTTP status.",
            ("status",),
            registry=registry,
        )
        self.memory_writes_not_admitted = Counter(
            "memory_writes_not_admitted",
            "Memory writes that were not queued: too large, over the tenant's quota, Redis nearly full or unreachable.",
            ("reason",),
            registry=registry,
        )
        self.jobs_not_admitted = Counter(
            "jobs_not_admitted",
            "Clients' jobs that were not queued: tenant over its quota of bytes, Redis nearly full or unreachable.",
            ("queue", "reason"),
            registry=registry,
        )
        self.longread_chunks = Counter(
            "longread_chunks", "Chunks read by long reads.", ("strategy",), registry=registry
        )
        self.longread_degradations = Counter(
            "longread_degradations",
            "Long-read replies that were empty, cut, or without a verdict.",
            ("kind",),
            registry=registry,
        )
        self.longread_ended = Counter(
            "longread_ended",
            "Finished long reads, by outcome; refused reads could never have succeeded.",
            ("outcome",),
            registry=registry,
        )
        self.longread_active = Gauge("longread_active", "Long reads running now.", registry=registry)
        self.longread_resumed = Counter(
            "longread_resumed", "Long reads resumed after a worker was lost.", registry=registry
        )
        self.longread_followers = Gauge(
            "longread_followers", "Streams of reads' events that the process sends.", registry=registry
        )
        self.longread_followers_refused = Counter(
            "longread_followers_refused",
            "Streams of reads' events that were refused, by the limit: of the tenant or of the process.",
            ("limit",),
            registry=registry,
        )
        self.longread_chunk_seconds = Histogram(
            "longread_chunk_seconds",
            "Time from one chunk of a read to the next.",
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.longread_webhooks = Counter(
            "longread_webhooks", "Webhook delivery attempts, by outcome.", ("outcome",), registry=registry
        )
        self.traces = Counter(
            "loop_traces",
            "Recorded loop runs, by outcome of their trace.",
            ("outcome",),
            registry=registry,
        )
        self.upstream_abort = Counter(
            "upstream_abort", "Engine requests aborted because the client disconnected.", registry=registry
        )
        self.upstream_fallback = Counter(
            "upstream_fallback",
            "Requests passed to the next engine because one could not take them.",
            ("model",),
            registry=registry,
        )
        self.rate_limit_skipped = Counter(
            "rate_limit_skipped", "Requests admitted without a rate limit because Redis failed.", registry=registry
        )
        self.upstream_errors = Counter(
            "upstream_errors", "Failed engine requests, by kind of error.", ("kind", "model"), registry=registry
        )
        self.streams_broken = Counter(
            "gateway_streams_broken",
            "Streams that began with 200 and ended with a server-side error.",
            ("route",),
            registry=registry,
        )
        self.recall_failed = Counter(
            "memory_recall_failed", "Chats answered without memories because the search failed.", registry=registry
        )
        self.turns_not_queued = Counter(
            "memory_turns_not_queued", "Chat turns whose memory write could not be queued.", registry=registry
        )
        self._circuit_open = Gauge(
            "upstream_circuit_open",
            "1 while an engine's circuit is open; a model's engines are numbered in their configured order.",
            ("model", "engine"),
            registry=registry,
        )
        self._active = Gauge("gateway_active_requests", "Requests in progress.", ("lane",), registry=registry)
        self._body_bytes = Gauge(
            "gateway_active_body_bytes", "Body bytes of the requests in progress.", registry=registry
        )
        self.refused_requests = Counter(
            "gateway_refused_requests",
            "Requests refused for lack of room, by the limit: of the process or of the tenant.",
            ("limit",),
            registry=registry,
        )
        self._fullness = Gauge(
            "gateway_fullness_ratio", "Load from 0 to 1: the larger share of requests or bytes.", registry=registry
        )
        self._begin_at_zero()

    def watch_circuit(self, model: str, engine: int, is_open: Callable[[], bool]) -> None:
        """Report at each scrape whether the circuit of a model's engine is open."""
        self._circuit_open.labels(model, engine).set_function(is_open)

    def watch_admission(self, admission: Admission) -> None:
        """Report at each scrape the requests and body bytes in progress."""
        self._active.labels("interactive").set_function(lambda: admission.active("interactive"))
        self._active.labels("batch").set_function(lambda: admission.active("batch"))
        self._body_bytes.set_function(lambda: admission.body_bytes)
        self._fullness.set_function(lambda: admission.fullness)

    def show_queue(self, queue: str, depth: Depth, *, now_s: float) -> None:
        """Set a queue's gauges at the time ``now_s`` (epoch seconds)."""
        self.job_queue_depth.labels(queue).set(depth.jobs)
        self.job_queue_oldest_seconds.labels(queue).set(_age_s(depth.oldest_created_ms, now_s))
        self.job_queue_waiting_seconds.labels(queue).set(_age_s(depth.waiting_since_ms, now_s))
        self.job_queue_tenants.labels(queue).set(depth.tenants)

    def show_memory_queue(self, depth: Depth, *, now_s: float) -> None:
        """Set the gauges of the memory writes, under the names that autoscalers and clients use."""
        self.memory_queue_depth.set(depth.jobs)
        self.memory_oldest_job_seconds.set(_age_s(depth.oldest_created_ms, now_s))

    def show_queued_bytes(self, queued: QueuedBytes) -> None:
        """Set the gauges of the bytes that unfinished jobs hold."""
        self.job_queued_bytes.set(queued.total)
        self.job_queued_bytes_largest_tenant.set(queued.largest_tenant)

    def show_redis(self, redis: RedisState) -> None:
        """Set the gauges of Redis's memory and durability."""
        self.redis_used_bytes.set(redis.used_bytes)
        self.redis_limit_bytes.set(redis.limit_bytes)
        self.redis_durable.set(redis.durable)

    def _begin_at_zero(self) -> None:
        """Create every series at zero: ``rate`` misses the first event of a series that starts with it."""
        for unknown in (self.job_dead_letters, self.redis_used_bytes, self.redis_limit_bytes, self.redis_durable):
            unknown.set(math.nan)  # until a worker sets them; the API never does
        for queue in ("memory", "reads", "files"):
            for reason in ("quota", "unavailable"):
                self.jobs_not_admitted.labels(queue, reason)
        for series, values in (
            (self.memory_action, get_args(Action)),
            (self.memory_writes_refused, ("400", "401", "403", "404", "413", "422")),
            (self.memory_writes_not_admitted, ("too_large", "quota", "unavailable")),
            (self.memory_tool_parse, ("native", "fallback", "failed")),
            (self.longread_chunks, get_args(Strategy)),
            (self.longread_degradations, NO_DEGRADATIONS.counts),
            (self.longread_ended, ("completed", "incomplete", "cancelled", "failed", "refused")),
            (self.longread_followers_refused, ("tenant", "process")),
            (self._active, get_args(Lane)),
            (self.refused_requests, get_args(Limit)),
            (self.traces, ("kept", "too_long", "off", "lost")),
            (self.longread_webhooks, ("delivered", "gone", "failed", "refused", "dead")),
        ):
            for value in values:
                series.labels(value)

    def count_error(self, error: MemloopError, *, model: str) -> None:
        """Count a failed engine call of the model by its kind."""
        self.upstream_errors.labels(type(error).__name__.lower(), model).inc()

    def count_tokens(self, kind: Literal["input", "output"], operation: str, model: str, tokens: int) -> None:
        """Count the tokens of one engine call of the model."""
        self._token_usage_of(kind, operation, model).observe(tokens)

    def count_overhead(self, route: str, seconds: float) -> None:
        """Record the time of one request spent outside the engine."""
        self._overhead_of(route).observe(seconds)


def _age_s(since_ms: int | None, now_s: float) -> float:
    return 0.0 if since_ms is None else max(0.0, now_s - since_ms / 1000)
