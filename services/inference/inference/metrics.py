"""All metrics of the launcher. The engine's own gauges appear under one name each, whichever engine runs."""

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.parser import text_string_to_metric_families

_ENGINE_GAUGES = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "cache_used",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
    "sglang:token_usage": "cache_used",
}


class LauncherMetrics:
    """The gauges, in the registry that ``/metrics`` serves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.up = Gauge("inference_engine_up", "1 when the engine answers and is warm", registry=registry)
        self.start_seconds = Gauge(
            "inference_engine_start_seconds",
            "From the engine's start until it served its model",
            registry=registry,
        )
        self.warmup_seconds = Gauge(
            "inference_warmup_seconds", "The first generation of each shape", ["shape"], registry=registry
        )
        self._engine = {
            "running": Gauge(
                "inference_engine_requests_running", "Requests that the engine decodes now", registry=registry
            ),
            "waiting": Gauge("inference_engine_requests_waiting", "Requests in the engine's queue", registry=registry),
            "cache_used": Gauge(
                "inference_engine_kv_cache_used_ratio", "Share of the KV cache in use, 0 to 1", registry=registry
            ),
        }

    def show_engine(self, exposition: str) -> None:
        """Take over the gauges from the engine's own ``/metrics`` text."""
        for name, value in engine_gauges(exposition).items():
            self._engine[name].set(value)


def engine_gauges(exposition: str) -> dict[str, float]:
    """``running``, ``waiting`` and ``cache_used``, those that an engine tells, summed over its replicas."""
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(exposition):
        name = _ENGINE_GAUGES.get(family.name)
        if name is not None:
            sums[name] = sum(sample.value for sample in family.samples)
    return sums
