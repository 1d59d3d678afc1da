"""All metrics of the launcher. The engine's own gauges appear under one name each, whichever engine runs."""

from dataclasses import dataclass
from functools import partial
from statistics import fmean

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.parser import text_string_to_metric_families

_ENGINE_METRICS = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "cache_used",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
    "sglang:token_usage": "cache_used",
    "openvino:requests_running": "running",
    "openvino:requests_waiting": "waiting",
    "openvino:cache_used_ratio": "cache_used",
    "vllm:generation_tokens": "generated",
    "sglang:realtime_tokens": "generated",
    "openvino:generated_tokens": "generated",
}
_RATIOS = {"cache_used"}
_CACHED = "prefill_cache"
"""SGLang counts tokens as they are computed, by mode; this one computes nothing. Its ``generation_tokens`` counts those
of requests that have ended."""


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """An engine's own gauges over its data-parallel copies of the model; None for a gauge that it does not export.

    ``running`` and ``waiting`` count requests, and ``generated`` the tokens computed since the engine started: sums.
    ``cache_used`` is the KV caches' share in use (0 to 1): the mean, because the copies' caches are of one size.
    """

    running: float | None = None
    waiting: float | None = None
    cache_used: float | None = None
    generated: float | None = None

    @property
    def requests(self) -> float:
        """Requests that are decoding or queued."""
        return (self.running or 0) + (self.waiting or 0)


class LauncherMetrics:
    """The launcher's gauges, in the registry that ``/metrics`` serves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge = partial(Gauge, registry=registry)
        self.up = gauge("inference_engine_up", "1 when the engine answers and is warm")
        self.start_seconds = gauge(
            "inference_engine_start_seconds", "Time from the engine's start until it served its model."
        )
        self.warmup_seconds = gauge("inference_warmup_seconds", "The first generation of each shape", ["shape"])
        self._engine = {
            "running": gauge("inference_engine_requests_running", "Requests that the engine decodes now"),
            "waiting": gauge("inference_engine_requests_waiting", "Requests in the engine's queue"),
            "cache_used": gauge("inference_engine_kv_cache_used_ratio", "Share of the KV cache in use, 0 to 1"),
        }

    def show(self, load: EngineLoad) -> None:
        for name, gauge in self._engine.items():
            value = getattr(load, name)
            if value is not None:
                gauge.set(value)


def engine_load(exposition: str) -> EngineLoad:
    """Parse the engine's ``/metrics`` text. Raises ValueError when it is not in Prometheus' format."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(exposition):
        name = _ENGINE_METRICS.get(family.name)
        counted = [sample for sample in family.samples if not sample.name.endswith("_created")]
        values = [sample.value for sample in counted if sample.labels.get("mode") != _CACHED]
        if name is not None and values:
            found[name] = fmean(values) if name in _RATIOS else sum(values)
    return EngineLoad(**found)
