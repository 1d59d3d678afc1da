"""``/metrics``, and what every process tells of itself: its version, its loop's lag, its memory, what it depends on."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from fastapi import APIRouter
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.responses import Response

from memloop_service.health import Check, is_there

_TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}
_EVERY_S: Final = 0.25
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_CHECK_EVERY_S: Final = 15.0
_CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Of the second and of the first version."""


def new_registry() -> CollectorRegistry:
    """A registry of a process's own, with its memory, file handles and collector."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def metrics_route(registry: CollectorRegistry) -> APIRouter:
    """``GET /metrics`` in Prometheus's text format."""
    router = APIRouter(tags=["health"])

    @router.get("/metrics", response_class=Response, responses={200: {"content": _TEXT}})
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    _ = metrics
    return router


def introduce(part: str, registry: CollectorRegistry) -> None:
    """Say once which part of which version this process is, and how much memory it may use."""
    build = Gauge("memloop_build_info", "1, with part and version", ("part", "version"), registry=registry)
    build.labels(part, version("memloop")).set(1)
    limit = Gauge("process_memory_limit_bytes", "Memory that the process may use at most", registry=registry)
    limit.set(memory_limit_bytes())


def watch_disk(registry: CollectorRegistry, folder: Path) -> None:
    """Tell at each scrape how full the disk of the folder is; NaN while the folder is not there."""

    def share() -> float:
        try:
            usage = shutil.disk_usage(folder)
        except OSError:
            return float("nan")
        return usage.free / usage.total

    free = Gauge("disk_free_ratio", "Free share, 0 to 1, of the disk that holds our data", registry=registry)
    free.set_function(share)


async def watch_loop(registry: CollectorRegistry) -> None:
    """Measure for ever how much later than asked the event loop wakes a sleeper."""
    lag = Histogram("event_loop_lag_seconds", "Delay of the event loop's timers", registry=registry, buckets=_BUCKETS)
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _EVERY_S
        await asyncio.sleep(_EVERY_S)
        lag.observe(max(0.0, loop.time() - due))


async def watch_dependencies(
    registry: CollectorRegistry, checks: Mapping[str, Check], *, every_s: float = _CHECK_EVERY_S
) -> None:
    """Ask for ever, as ``/readyz`` does, whether each dependency is there."""
    up = Gauge("dependency_up", "1 when the dependency answered the last check", ("dependency",), registry=registry)
    while True:
        await asyncio.sleep(every_s)
        for name, check in checks.items():
            up.labels(name).set(await is_there(check))


def memory_limit_bytes() -> int:
    """The container's limit, or the machine's memory where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(int(text) for path in _CGROUP_LIMITS if (text := _read(path)).isdecimal())])


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
