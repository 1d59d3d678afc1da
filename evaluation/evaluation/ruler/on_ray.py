"""Reads items as Ray tasks on several machines. Only this module imports Ray, and only when it is used.

Each task reads one item and tries the engines in its own order, so it continues on another engine when one fails. Only
the driver writes results; Ray restarts a task whose machine is lost.
"""

import asyncio
import importlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Protocol, TypeAlias, cast

from evaluation.ruler.fleet import Effort, Engine, Job, read_all
from evaluation.ruler.items import Item
from evaluation.ruler.readers import Setup, reader_at
from evaluation.ruler.records import Record

_CPUS_PER_TASK = 0.25
_RESTARTS = 3

Reference: TypeAlias = object
"""Ray's reference to a task's result."""


class _Faults(Protocol):
    RayError: type[Exception]
    RayTaskError: type[Exception]


class _Task(Protocol):
    def remote(self, *arguments: object) -> Reference: ...


class _Ray(Protocol):
    """The part of Ray's API that is used."""

    exceptions: _Faults

    def init(self, *, address: str, log_to_driver: bool) -> object: ...
    def remote(self, *, num_cpus: float, max_retries: int) -> Callable[[Callable[..., Record]], _Task]: ...
    def put(self, value: object) -> Reference: ...
    def get(self, reference: Reference) -> Record: ...
    def wait(self, references: list[Reference]) -> tuple[list[Reference], list[Reference]]: ...
    def shutdown(self) -> None: ...


def read_on_ray(
    jobs: Iterator[Job],
    urls: Sequence[str],
    setup: Setup,
    *,
    effort: Effort,
    address: str,
    keep: Callable[[Record], None],
) -> None:
    """Read all jobs on a cluster: ``auto``, its address, or ``local`` for a cluster on this machine.

    Raises ImportError without Ray.
    """
    ray = cast(_Ray, importlib.import_module("ray"))
    ray.init(address=address, log_to_driver=False)
    try:
        _Spread(ray, urls, setup, effort).run(jobs, keep)
    finally:
        ray.shutdown()


def read_alone(item: Item, seed: int, urls: Sequence[str], setup: Setup, effort: Effort) -> Record:
    """Read one item in its own process: on the first engine, with the others for failover."""
    return asyncio.run(_read_alone(Job(item, seed), urls, setup, effort))


async def _read_alone(job: Job, urls: Sequence[str], setup: Setup, effort: Effort) -> Record:
    records: list[Record] = []
    alone = Effort(at_once=1, attempts=effort.attempts, pause_s=effort.pause_s)
    async with AsyncExitStack() as stack:
        engines = [Engine(url, reader_at(url, setup)) for url in urls]
        for engine in engines:
            stack.push_async_callback(engine.reader.close)
        await read_all(iter([job]), engines, effort=alone, keep=records.append)
    return records[0]


class _Spread:
    """Tasks in flight: a bounded number per engine, each of which returns its slot."""

    def __init__(self, ray: _Ray, urls: Sequence[str], setup: Setup, effort: Effort) -> None:
        self._ray = ray
        self._read = ray.remote(num_cpus=_CPUS_PER_TASK, max_retries=_RESTARTS)(read_alone)
        self._urls = urls
        self._setup = ray.put(setup)
        self._effort = effort
        self._free = deque(list(range(len(urls))) * effort.at_once)
        self._in_flight: dict[Reference, tuple[int, Job]] = {}
        """Each task's first engine, and its job."""

    def run(self, jobs: Iterator[Job], keep: Callable[[Record], None]) -> None:
        for job in jobs:
            if not self._free:
                self._collect(keep)
            self._start(job)
        while self._in_flight:
            self._collect(keep)

    def _start(self, job: Job) -> None:
        first = self._free.popleft()
        urls = [*self._urls[first:], *self._urls[:first]]
        reference = self._read.remote(job.item, job.seed, urls, self._setup, self._effort)
        self._in_flight[reference] = first, job

    def _collect(self, keep: Callable[[Record], None]) -> None:
        """Wait for one task and keep its record."""
        (reference, *_), _ = self._ray.wait(list(self._in_flight))
        first, job = self._in_flight.pop(reference)
        self._free.append(first)
        keep(self._record(reference, job))

    def _record(self, reference: Reference, job: Job) -> Record:
        """Return the task's record; a failure if its processes died on every attempt. Our own bugs are raised."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            return Record(*job.item.key, job.seed, job.item.golds, "ray", error=f"{type(error).__name__}: {error}")
