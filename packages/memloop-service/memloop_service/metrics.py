"""``/metrics``, and the metrics of every process: version, event-loop lag, memory, dependencies, replicas."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Depends, FastAPI, Request
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.responses import Response

from memloop.wire.errors import MemloopError
from memloop_clients import ReplicaLoad
from memloop_service.errors import ERRORS, handle
from memloop_service.health import Check, is_there
from memloop_service.incoming import refuse_unknown

_TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}
_EVERY_S: Final = 0.25
VERSION: Final = version("memloop-service")
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_CHECK_EVERY_S: Final = 15.0
_CGROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""The files of cgroup versions 2 and 1 that say how much memory a container may take."""


def new_registry() -> CollectorRegistry:
    """Create a process's registry with the metrics of its memory, file handles and garbage collector."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


router = APIRouter(tags=["health"], dependencies=[Depends(refuse_unknown)], responses=ERRORS)


@router.get("/metrics", response_class=Response, responses={200: {"content": _TEXT}})
async def metrics(request: Request) -> Response:
    return Response(generate_latest(request.app.state.registry), media_type=CONTENT_TYPE_LATEST)


def metrics_app(registry: CollectorRegistry) -> FastAPI:
    """Build the app of a port that serves ``/metrics`` and nothing else."""
    app = FastAPI(title="metrics", openapi_url=None)
    app.add_exception_handler(MemloopError, handle)
    app.router.routes.extend(router.routes)
    app.state.registry = registry
    return app


def introduce(part: str, registry: CollectorRegistry) -> None:
    """Register the process's part, version and memory limit."""
    build = Gauge(
        "memloop_build_info", "Always 1; the labels hold part and version.", ("part", "version"), registry=registry
    )
    build.labels(part, VERSION).set(1)
    limit = Gauge("process_memory_limit_bytes", "Memory limit of the process", registry=registry)
    limit.set(memory_limit_bytes())


def watch_disk(registry: CollectorRegistry, folder: Path) -> None:
    """Register the free share of the folder's disk, read at each scrape; NaN while the folder does not exist."""

    def share() -> float:
        try:
            usage = shutil.disk_usage(folder)
        except OSError:
            return float("nan")
        return usage.free / usage.total

    free = Gauge("disk_free_ratio", "Free share, 0 to 1, of the disk that holds our data", registry=registry)
    free.set_function(share)


async def watch_loop(registry: CollectorRegistry) -> None:
    """Measure in an endless loop how late the event loop wakes a sleeper."""
    lag = Histogram("event_loop_lag_seconds", "Delay of the event loop's timers", registry=registry, buckets=_BUCKETS)
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _EVERY_S
        await asyncio.sleep(_EVERY_S)
        lag.observe(max(0.0, loop.time() - due))


async def watch_dependencies(
    registry: CollectorRegistry, checks: Mapping[str, Check], *, every_s: float = _CHECK_EVERY_S
) -> None:
    """Check each dependency in an endless loop, as ``/readyz`` does."""
    up = Gauge("dependency_up", "1 when the dependency answered the last check", ("dependency",), registry=registry)
    while True:
        await asyncio.sleep(every_s)
        for name, check in checks.items():
            up.labels(name).set(await is_there(check))


def memory_limit_bytes() -> int:
    """Return the container's memory limit, or the machine's memory if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [machine]
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            limits.append(int(path.read_text()))
    return min(limits)


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
        return _families()

    def collect(self) -> Iterable[Metric]:
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
