"""Exports the replicas of a service that a process balances over: requests, load and state of each."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memloop_clients import ReplicaLoad


class ReplicaMetrics(Collector):
    """The replicas of engines and stores that a client balances over, read from it at each scrape.

    A replica has a number, not an address: from the sixteenth on, all have the label ``more``.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._loads: dict[str, Callable[[], Sequence[ReplicaLoad]]] = {}
        registry.register(self)

    def watch(self, upstream: str, loads: Callable[[], Sequence[ReplicaLoad]]) -> None:
        """Report the loads under this name."""
        self._loads[upstream] = loads

    def describe(self) -> Iterable[Metric]:
        """See prometheus_client's collectors."""
        return _families()

    def collect(self) -> Iterable[Metric]:
        """See prometheus_client's collectors."""
        requests, outstanding, states = families = _families()
        for upstream, loads in self._loads.items():
            for load in loads():
                requests.add_metric((upstream, load.replica), load.requests)
                outstanding.add_metric((upstream, load.replica), load.outstanding)
                states.add_metric((upstream, load.replica, load.state), 1)
        return families


def _families() -> tuple[CounterMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    labels = ("upstream", "replica")
    return (
        CounterMetricFamily("upstream_replica_requests", "Requests sent to a replica.", labels=labels),
        GaugeMetricFamily("upstream_replica_outstanding", "Running requests of a replica.", labels=labels),
        GaugeMetricFamily(
            "upstream_replica_state",
            "1 for the state of a replica: ready, unready, ejected after failures, or gone.",
            labels=(*labels, "state"),
        ),
    )
