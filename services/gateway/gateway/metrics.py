"""Defines every metric of the gateway and its worker, by family. No label contains a user's id or text."""

import collections
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Literal, TypeAlias, TypeVar, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.queue import Depth
from memloop.loops.forms import Form
from memloop.loops.results import NO_DEGRADATIONS
from memloop.wire.base import spender
from memloop.wire.errors import MemloopError, NotFound
from memloop.wire.long_read import Strategy
from memloop.wire.memory_events import Action
from memloop.wire.policy import ALL_KINDS
from memloop_service.http import Admission, Lane, Limit
from memloop_service.metrics import ReplicaMetrics
from memloop_state.room import RedisState

_LATENCY_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_OVERHEAD_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_TOKENS = tuple(float(4**power) for power in range(1, 11))
_Metric = TypeVar("_Metric", Counter, Gauge)
TokenKind: TypeAlias = Literal["input", "output"]
Spent: TypeAlias = Literal["calls", TokenKind]
Spending: TypeAlias = collections.Counter[tuple[str, Spent, str]]
"""What tenants spent: by tenant, kind and the model's label."""


class RequestMetrics:
    """Requests and streams of the API, and the room that they take."""

    def __init__(self, registry: CollectorRegistry) -> None:
        count, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        time_of = partial(Histogram, registry=registry)
        self.request_seconds = time_of(
            "gateway_request_seconds",
            "Total time of a request, to the last byte of the response.",
            ("route", "code"),
            buckets=_LATENCY_S,
        )
        self.overhead_seconds = time_of(
            "gateway_overhead_seconds", "Time of a request spent outside the engine.", ("route",), buckets=_OVERHEAD_S
        )
        self._overhead_of = lru_cache(maxsize=64)(self.overhead_seconds.labels)
        self.streams_broken = count(
            "gateway_streams_broken", "Streams that began with 200 and ended with a server-side error.", ("route",)
        )
        self.rate_limit_skipped = count(
            "rate_limit_skipped", "Requests admitted without a rate limit because Redis failed."
        )
        self.refused_requests = count(
            "gateway_refused_requests",
            "Requests refused for lack of room, by the limit: of the process or of the tenant.",
            ("limit",),
        )
        self._active = gauge("gateway_active_requests", "Requests in progress.", ("lane",))
        self._body_bytes = gauge("gateway_active_body_bytes", "Body bytes of the requests in progress.")
        self._fullness = gauge("gateway_fullness_ratio", "Load from 0 to 1: the larger share of requests or bytes.")
        _begin_at_zero(self.refused_requests, get_args(Limit))
        _begin_at_zero(self._active, get_args(Lane))

    def watch_admission(self, admission: Admission) -> None:
        """Report at each scrape the requests and body bytes in progress."""
        self._active.labels("interactive").set_function(lambda: admission.active("interactive"))
        self._active.labels("batch").set_function(lambda: admission.active("batch"))
        self._body_bytes.set_function(lambda: admission.body_bytes)
        self._fullness.set_function(lambda: admission.fullness)

    def count_overhead(self, route: str, seconds: float) -> None:
        """Record the time of one request spent outside the engine."""
        self._overhead_of(route).observe(seconds)


class EngineMetrics:
    """Calls of the engines."""

    def __init__(self, registry: CollectorRegistry) -> None:
        count = partial(Counter, registry=registry)
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
            buckets=_TOKENS,
            registry=registry,
        )
        self._token_usage_of = lru_cache(maxsize=256)(self.token_usage.labels)
        self._spent = Spending()
        call_seconds = Histogram(
            "gateway_engine_call_seconds",
            "Time of an engine call that succeeded, to its last byte.",
            ("model",),
            buckets=_LATENCY_S,
            registry=registry,
        )
        self._call_seconds_of = lru_cache(maxsize=64)(call_seconds.labels)
        self._called: Callable[[str, float | None], object] | None = None
        self.usage_lost = count(
            "gateway_usage_lost", "Engine calls that are missing from the tenants' usage because Redis failed."
        )
        self.prompts_cut = count(
            "upstream_prompts_cut",
            "Prompts of the loops that an engine cut, and whose replies were dropped.",
            ("model",),
        )
        self.chats_cut = count(
            "upstream_chats_cut",
            "Chats with memory that exceed the model's window, and of which the engine read and answered a part.",
            ("model",),
        )
        self.window_tokens = Gauge(
            "upstream_window_tokens",
            "The window that the loops' prompts are made for, once it is known.",
            ("model",),
            registry=registry,
        )
        self.upstream_abort = count("upstream_abort", "Engine requests aborted because the client disconnected.")
        self.upstream_fallback = count(
            "upstream_fallback", "Requests passed to the next engine because one could not take them.", ("model",)
        )
        self.upstream_errors = count("upstream_errors", "Failed engine requests, by kind of error.", ("kind", "model"))
        self.upstream_absent = count(
            "upstream_absent", "Requests for a model that was not there yet, by its id in the models file.", ("model",)
        )
        self.upstream_unresolved = count(
            "upstream_unresolved", "Failed lookups of an engine's name, by its model's id in the file.", ("model",)
        )
        self.upstream_circuit_open = Gauge(
            "upstream_circuit_open",
            "1 while an engine's circuit is open; a model's engines are numbered in their configured order.",
            ("model", "engine"),
            registry=registry,
        )

    def expect_models(self, model_ids: Sequence[str]) -> None:
        """Begin to count at zero, so that the first request for an absent model is an increase."""
        _begin_at_zero(self.upstream_absent, model_ids)
        _begin_at_zero(self.upstream_unresolved, model_ids)

    def count_error(self, error: MemloopError, *, model: str) -> None:
        """Count a failed engine call of the model by its kind.

        A refusal with 4xx is the client's, except 404: the gateway chose the engine, the path and the model's name.
        """
        self.upstream_errors.labels(type(error).__name__.lower(), model).inc()
        if self._called is not None and (error.http_status >= 500 or error.http_status == NotFound.status):
            self._called(model, None)

    def count_call(self, model: str, seconds: float) -> None:
        """Record an engine call of the model that succeeded."""
        self._call_seconds_of(model).observe(seconds)
        if self._called is not None:
            self._called(model, seconds)

    def watch_calls(self, called: Callable[[str, float | None], object] | None) -> None:
        """Call ``called``, if any, with the model of every engine call and its seconds, None if the engine failed."""
        self._called = called

    def count_tokens(self, kind: TokenKind, operation: str, model: str, tokens: int) -> None:
        """Count the tokens of one engine call of the model, and for the tenant of the task at hand."""
        self._token_usage_of(kind, operation, model).observe(tokens)
        if tenant := spender.get():
            self._spent[tenant, kind, model] += tokens
            self._spent[tenant, "calls", model] += kind == "input"  # each call counts its input once

    def take_spent(self) -> Spending:
        """Return what tenants spent since this was last called."""
        spent, self._spent = self._spent, Spending()
        return spent


class MemoryMetrics:
    """Recall and writes of memories."""

    def __init__(self, registry: CollectorRegistry) -> None:
        count = partial(Counter, registry=registry)
        self.memory_search_seconds = Histogram(
            "memory_search_seconds", "Duration of a memory search.", ("stage",), buckets=_OVERHEAD_S, registry=registry
        )
        self.memory_action = count("memory_action", "Decisions of the memory writer, by action.", ("action",))
        self.memory_tool_parse = count(
            "memory_tool_parse", "Memory writer tool calls, by the parser that read them.", ("path",)
        )
        self._writer_form = Gauge(
            "memory_writer_form",
            "1 for the form in which a model is asked as a memory writer.",
            ("model", "form"),
            registry=registry,
        )
        self.memory_dead_letters = count("memory_dead_letters", "Memory writes that became dead letters.")
        self.memory_kept_verbatim = count(
            "memory_kept_verbatim",
            "Memory writes with turns that were kept word for word, by why the writer decided nothing on them.",
            ("reason",),
        )
        self.memory_redecided = count(
            "memory_redecided",
            "New decisions on writes that were kept verbatim, by the status of the write.",
            ("status",),
        )
        self.memory_writes_refused = count(
            "memory_writes_refused", "Attempts of memory writes that the engine rejected, by HTTP status.", ("status",)
        )
        self.memory_writes_not_admitted = count(
            "memory_writes_not_admitted",
            "Memory writes that were not queued: too large, over the tenant's quota, Redis nearly full or unreachable.",
            ("reason",),
        )
        self.recall_failed = count("memory_recall_failed", "Chats answered without memories because the search failed.")
        self.recall_left_out = count(
            "memory_recall_left_out",
            "Chats answered without memories because the engine refused them with them as too long.",
        )
        self.pending_unread = count(
            "memory_pending_unread", "Chats and searches that could not read all turns without a decision."
        )
        self.turns_not_queued = count("memory_turns_not_queued", "Chat turns whose memory write could not be queued.")
        self.memory_redacted = count(
            "memory_redacted", "Values redacted before they were stored, by their kind.", ("kind",)
        )
        self.memory_not_kept = count(
            "memory_not_kept", "Sentences that a policy never keeps, left out of a text, a key or metadata."
        )
        self.memory_changes_missed = count(
            "memory_changes_missed", "Times that a memory webhook fell behind the changes that are kept."
        )
        self.traces = count("loop_traces", "Recorded loop runs, by outcome of their trace.", ("outcome",))
        self.responses_not_kept = count("responses_not_kept", "Responses that could not be stored.", ("reason",))
        _begin_at_zero(self.responses_not_kept, ("full", "erased", "unavailable"))
        _begin_at_zero(self.memory_action, get_args(Action))
        _begin_at_zero(self.memory_tool_parse, ("native", "fallback", "repaired", "failed"))
        _begin_at_zero(self.memory_kept_verbatim, ("unusable", "refused"))
        _begin_at_zero(self.memory_redecided, ("completed", "kept_verbatim"))
        _begin_at_zero(self.memory_writes_refused, ("400", "401", "403", "404", "413", "422"))
        _begin_at_zero(self.memory_writes_not_admitted, ("too_large", "quota", "unavailable"))
        _begin_at_zero(self.memory_redacted, sorted(ALL_KINDS))
        _begin_at_zero(self.traces, ("kept", "too_long", "off", "lost"))

    def show_form(self, model: str, form: Form) -> None:
        """Set the form in which a model is asked as a memory writer from now on."""
        for each in get_args(Form):
            self._writer_form.labels(model, each).set(each == form)


class QueueMetrics:
    """Queues of jobs, and the Redis that holds them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge = partial(Gauge, registry=registry)
        self.memory_queue_depth = gauge("memory_queue_depth", "Memory writes not finished yet.")
        self.memory_oldest_job_seconds = gauge(
            "memory_oldest_job_seconds", "Age of the oldest unfinished memory write."
        )
        self.job_queue_depth = gauge("job_queue_depth", "Unfinished jobs of a queue.", ("queue",))
        self.job_queue_oldest_seconds = gauge(
            "job_queue_oldest_seconds", "Age of a queue's oldest unfinished job.", ("queue",)
        )
        self.job_queue_waiting_seconds = gauge(
            "job_queue_waiting_seconds", "How long the first of a queue's lanes has waited for a worker.", ("queue",)
        )
        self.job_queue_tenants = gauge(
            "job_queue_tenants", "Tenants of a queue with jobs that wait for a worker.", ("queue",)
        )
        self.job_queued_bytes = gauge("job_queued_bytes", "Bytes that the unfinished jobs of all queues hold.")
        self.job_queued_bytes_largest_tenant = gauge(
            "job_queued_bytes_largest_tenant", "Bytes that the unfinished jobs of the largest tenant hold."
        )
        self.job_dead_letters = gauge("job_dead_letters", "Dead letters of all queues, which wait for an operator.")
        self.redis_used_bytes = gauge("jobs_redis_used_bytes", "Memory used by Redis.")
        self.redis_limit_bytes = gauge("jobs_redis_limit_bytes", "Memory limit of Redis.")
        self.redis_durable = gauge(
            "jobs_redis_durable", "1 if Redis writes an append-only file and its last write succeeded."
        )
        self.jobs_not_admitted = Counter(
            "jobs_not_admitted",
            "Clients' jobs that were not queued: tenant over its quota of bytes, Redis nearly full or unreachable.",
            ("queue", "reason"),
            registry=registry,
        )
        for unknown in (self.job_dead_letters, self.redis_used_bytes, self.redis_limit_bytes, self.redis_durable):
            unknown.set(math.nan)  # until a worker sets them; the API never does
        for queue in ("memory", "reads", "files", "responses"):
            for reason in ("quota", "unavailable"):
                self.jobs_not_admitted.labels(queue, reason)

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

    def show_queued_bytes(self, of_tenants: Mapping[str, int]) -> None:
        """Set the gauges of the bytes that unfinished jobs hold."""
        self.job_queued_bytes.set(sum(of_tenants.values()))
        self.job_queued_bytes_largest_tenant.set(max(of_tenants.values(), default=0))

    def show_redis(self, redis: RedisState) -> None:
        """Set the gauges of Redis's memory and durability."""
        self.redis_used_bytes.set(redis.used_bytes)
        self.redis_limit_bytes.set(redis.limit_bytes)
        self.redis_durable.set(redis.durable)


class ReadMetrics:
    """Long reads, their followers and their webhooks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        count, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self.longread_chunks = count("longread_chunks", "Chunks read by long reads.", ("strategy",))
        self.longread_degradations = count(
            "longread_degradations", "Long-read replies that were empty, cut, or without a verdict.", ("kind",)
        )
        self.longread_ended = count(
            "longread_ended", "Finished long reads, by outcome; refused reads could never have succeeded.", ("outcome",)
        )
        self.longread_active = gauge("longread_active", "Long reads running now.")
        self.longread_resumed = count("longread_resumed", "Long reads resumed after a worker was lost.")
        self.longread_followers = gauge("longread_followers", "Streams of reads' events that the process sends.")
        self.longread_followers_refused = count(
            "longread_followers_refused",
            "Streams of reads' events that were refused, by the limit: of the tenant or of the process.",
            ("limit",),
        )
        self.longread_chunk_seconds = Histogram(
            "longread_chunk_seconds",
            "Time from one chunk of a read to the next.",
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.longread_webhooks = count("longread_webhooks", "Webhook delivery attempts, by outcome.", ("outcome",))
        _begin_at_zero(self.longread_chunks, get_args(Strategy))
        _begin_at_zero(self.longread_degradations, NO_DEGRADATIONS.counts)
        _begin_at_zero(self.longread_ended, ("completed", "incomplete", "cancelled", "failed", "refused"))
        _begin_at_zero(self.longread_followers_refused, ("tenant", "process"))
        _begin_at_zero(self.longread_webhooks, ("delivered", "gone", "failed", "refused", "dead"))


class Metrics(RequestMetrics, EngineMetrics, MemoryMetrics, QueueMetrics, ReadMetrics):
    """The metrics of one process, registered in the registry that its ``/metrics`` serves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        RequestMetrics.__init__(self, registry)
        EngineMetrics.__init__(self, registry)
        MemoryMetrics.__init__(self, registry)
        self.replicas = ReplicaMetrics(registry)
        QueueMetrics.__init__(self, registry)
        ReadMetrics.__init__(self, registry)


def _begin_at_zero(metric: _Metric, values: Iterable[str]) -> None:
    """Create every series at zero: ``rate`` misses the first event of a series that starts with it."""
    for value in values:
        metric.labels(value)


def _age_s(since_ms: int | None, now_s: float) -> float:
    return 0.0 if since_ms is None else max(0.0, now_s - since_ms / 1000)
