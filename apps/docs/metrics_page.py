"""Writes the reference of metrics from the classes that define them: ``python -m apps.docs.metrics_page``.

A process's metrics are those that its composition root registers; no process is started.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gateway.metrics import Metrics as GatewayMetrics
from inference.metrics import LauncherMetrics
from memloop.chores import alongside
from memloop_service import ServiceSettings, create_app, watch_disk
from memloop_service.metrics import watch_dependencies, watch_loop
from memory_store.metrics import Metrics as StoreMetrics
from trainer.metrics_exporter import RunLog

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/reference/metrics.md"
_SERIES: Final[Mapping[str, str]] = {"counter": "_total"}
_HEAD: Final = """# Every metric

`make docs-reference` writes this page from the code. [Metrics, logs and
tracing](../operations/metrics-and-tracing.md#metrics) explains how to read them and lists values of labels. A histogram
has the series `_bucket`, `_sum` and `_count`. Every process also has `process_…` and `python_gc_…` of Prometheus's own
client.
"""


class _Recorded(CollectorRegistry):
    """A registry that lists what was registered in it."""

    def __init__(self) -> None:
        super().__init__()
        self.collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Keep the collector."""
        super().register(collector)
        self.collectors.append(collector)


def page() -> str:
    """The page's whole text."""
    parts: Mapping[str, Callable[[CollectorRegistry], object]] = {
        "Gateway and worker": GatewayMetrics,
        "Memory store": StoreMetrics,
        "Launcher": LauncherMetrics,
        "Trainer": lambda registry: registry.register(RunLog(ROOT / "no-run.jsonl")),
    }
    sections = [("Every process", asyncio.run(_of_every_process()))]
    for title, define in parts.items():
        registry = _Recorded()
        define(registry)
        sections.append((title, registry.collectors))
    return "\n".join([_HEAD, *(_section(title, collectors) for title, collectors in sections)])


async def _of_every_process() -> list[Collector]:
    registry = _Recorded()
    create_app("any", settings=ServiceSettings(), registry=registry)
    watch_disk(registry, ROOT)
    async with alongside(watch_loop(registry), watch_dependencies(registry, {})):
        await asyncio.sleep(0)
    return registry.collectors


def _section(title: str, collectors: Iterable[Collector]) -> str:
    rows = sorted({row for collector in collectors for row in _rows(collector)})
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"## {title}\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n{table}\n"


def _rows(collector: Collector) -> Iterator[tuple[str, str, str, str]]:
    for family in _families(collector):
        name = family.name + _SERIES.get(family.type, "")
        labels = ", ".join(f"`{label}`" for label in _labels(collector, family))
        yield f"`{name}`", family.type, labels, family.documentation.rstrip(".")


def _families(collector: Collector) -> Iterable[Metric]:
    described: Iterable[Metric] | None = getattr(collector, "describe", list)()
    return described or collector.collect()


def _labels(collector: Collector, family: Metric) -> tuple[str, ...]:
    """The labels' names; prometheus_client has no public way to ask for those of a metric without a series."""
    holder = collector if isinstance(collector, MetricWrapperBase) else family
    return tuple(getattr(holder, "_labelnames", ()))


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("it takes no arguments")
    PAGE.write_text(page(), "utf-8")
