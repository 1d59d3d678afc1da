"""Makes ``/metrics`` whole for several processes on one port: whichever answers a scrape asks the others.

Counters and histograms are added up; a gauge has the label ``process``. Each process gives its own metrics on a Unix
socket in a folder that only they can enter. Gauges that are read at the scrape, of which we have many, rule out
prometheus_client's multiprocess mode, which keeps values in files.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from memloop.wire.errors import Unavailable
from memloop_service.siblings import Sibling

_SIBLING_S: Final = 8.0
"""Less than a scrape takes at most by default, which is 10 s."""
_ADDED: Final = frozenset({"counter", "histogram", "summary"})


async def exposition(registry: CollectorRegistry) -> bytes:
    """Return the metrics of this process, or of all processes on its port.

    Raises Unavailable when one of them is late: without its part, counters would seem to begin again.
    """
    sibling = Sibling.here()
    own = generate_latest(registry)
    if sibling is None:
        return own
    others = sibling.others()
    texts = await asyncio.gather(*map(_text, others))
    found = {path.stem: text for path, text in zip(others, texts, strict=True) if text}
    return merged(found | {str(sibling.number): own.decode()})


@asynccontextmanager
async def given_to_siblings(registry: CollectorRegistry) -> AsyncGenerator[None]:
    """Give the metrics to the other processes during the block, if there are any."""
    sibling = Sibling.here()
    if sibling is None:
        yield
        return

    async def give(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(generate_latest(registry))
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(give, sibling.started)
    try:
        yield
    finally:
        server.close()


def merged(texts: Mapping[str, str]) -> bytes:
    """Merge the expositions of processes, by their numbers."""
    whole: dict[str, Metric] = {}
    for process, text in sorted(texts.items()):
        for family in text_string_to_metric_families(text):
            into = whole.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            _add(into, family, process)
    registry = CollectorRegistry()
    registry.register(_Merged(list(whole.values())))
    return generate_latest(registry)


def _add(into: Metric, family: Metric, process: str) -> None:
    """Add a process's samples of one metric to those of the others."""
    if family.type not in _ADDED:
        for sample in family.samples:
            into.add_sample(sample.name, {**sample.labels, "process": process}, sample.value)
        return
    sums = {(sample.name, *sorted(sample.labels.items())): sample for sample in into.samples}
    for sample in family.samples:
        before = sums.get((sample.name, *sorted(sample.labels.items())))
        value = sample.value + (before.value if before is not None else 0.0)
        sums[sample.name, *sorted(sample.labels.items())] = sample._replace(value=value)
    into.samples = list(sums.values())


class _Merged(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


async def _text(path: Path) -> str:
    """Return a sibling's metrics; nothing when it is gone."""
    try:
        async with asyncio.timeout(_SIBLING_S):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                return (await reader.read()).decode()
            finally:
                writer.close()
    except TimeoutError as error:
        raise Unavailable("a process of this port did not give its metrics in time") from error
    except OSError:
        return ""
