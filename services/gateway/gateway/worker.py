"""The worker process: takes memory writes and background reads from Redis. Run: ``python -m gateway.worker``.

Its HTTP port serves health and metrics only.
"""

import asyncio
import logging
import os
import secrets
import signal
import socket
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from fastapi import FastAPI
from redis.asyncio import Redis

from gateway.engine.watched import WatchedModel
from gateway.files.extraction import ExtractionLimits
from gateway.files.handler import FileHandler
from gateway.files.records import FileRecords
from gateway.files.storage import local_folder
from gateway.long_read.hosts import ReadHandler
from gateway.long_read.run import ReadingTools
from gateway.memory.handler import MemoryHandler
from gateway.memory.idle_buffers import flush_for_ever
from gateway.memory.jobs import Jobs
from gateway.memory.turn_batches import BufferLimits
from gateway.memory.writer import WriterTools
from gateway.metrics import Metrics
from gateway.queue.runner import Runner, RunnerOptions
from gateway.redis.lua import redis_errors
from gateway.redis.memory import redis_state
from gateway.services import Services, open_services
from gateway.settings import WorkerSettings
from gateway.traces.keeper import Served
from gateway.webhooks.handler import DeliveryHandler
from memloop.wire.errors import DependencyError
from memloop_service import Check, create_app, ended, new_registry, run, start_tracing, watch_disk

_LOG = logging.getLogger(__name__)
_GAUGE_EVERY_S = 5.0


@dataclass(slots=True)
class _Opened:
    """The services, once they are open: readiness is asked for before."""

    services: Services | None = None

    def get(self) -> Services:
        if self.services is None:
            raise DependencyError("The worker is starting.")
        return self.services


def build_app(settings: WorkerSettings) -> FastAPI:
    """The worker's application; its lifespan is the work."""
    registry = new_registry()
    metrics = Metrics(registry)
    opened = _Opened()
    if (documents := local_folder(settings.storage_url)) is not None:
        watch_disk(registry, documents)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        del app
        async with open_services(settings, metrics) as services:
            opened.services = services
            async with working(services, settings):
                yield

    return create_app(
        "memloop-worker", settings=settings, readiness=_checks(opened), registry=registry, lifespan=lifespan
    )


def _checks(opened: _Opened) -> Mapping[str, Check]:
    async def redis() -> None:
        with redis_errors():
            await opened.get().redis.ping()  # pyright: ignore[reportUnknownMemberType] - untyped keywords

    async def store() -> None:
        await opened.get().store.check()

    async def engine() -> None:
        await opened.get().engine.check()

    return {"redis": redis, "store": store, "engine": engine}


@asynccontextmanager
async def working(services: Services, settings: WorkerSettings) -> AsyncGenerator[None]:
    """Work the queues meanwhile. A fault that ends the work ends the process too."""
    stop = asyncio.Event()
    work = asyncio.create_task(_work(services, settings, stop))
    work.add_done_callback(_end_process_on_fault)
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait({work})


async def _work(services: Services, settings: WorkerSettings, stop: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        for runner in _runners(services, settings):
            group.create_task(runner.run(stop))
        gauges = group.create_task(_gauges(services))
        idle = group.create_task(flush_for_ever(services.store, services.jobs, age_s=settings.buffer_flush_age_s))
        sweep = group.create_task(_sweep_for_ever(services.files, settings.sweep_every_s))
        await stop.wait()
        await ended({gauges, idle, sweep})


def _runners(services: Services, settings: WorkerSettings) -> Iterator[Runner]:
    consumer = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    limits = BufferLimits(settings.buffer_flush_turns, settings.buffer_flush_tokens)
    writes = MemoryHandler(_writer_tools(services, limits))
    reads = ReadHandler(services.redis, ReadingTools.of(services, services.engine), services.engine)
    yield Runner(services.jobs.memory, writes, _options(settings, settings.worker_concurrency), consumer=consumer)
    yield Runner(services.jobs.reads, reads, _options(settings, settings.read_concurrency), consumer=consumer)
    yield Runner(services.jobs.webhooks, _deliveries(services, settings), _attempts(settings), consumer=consumer)
    if services.files is not None:
        files = FileHandler(services.files, _limits(settings))
        yield Runner(services.jobs.files, files, _options(settings, settings.extract_concurrency), consumer=consumer)


def _deliveries(services: Services, settings: WorkerSettings) -> DeliveryHandler:
    timeout_s = settings.webhook_timeout_s
    return DeliveryHandler(services.redis, services.webhooks, services.metrics, timeout_s=timeout_s)


def _attempts(settings: WorkerSettings) -> RunnerOptions:
    return replace(
        _options(settings, settings.webhook_concurrency),
        attempts=settings.webhook_attempts,
        retry_s=settings.webhook_retry_s,
        max_delay_s=3600.0,
    )


def _limits(settings: WorkerSettings) -> ExtractionLimits:
    return ExtractionLimits(
        memory_bytes=settings.extract_memory_bytes,
        cpu_s=settings.extract_cpu_s,
        wall_s=settings.extract_wall_s,
        text_bytes=settings.max_text_bytes,
    )


def _options(settings: WorkerSettings, concurrency: int) -> RunnerOptions:
    return RunnerOptions(
        concurrency=concurrency,
        lease_s=settings.lane_ttl_s,
        idle_s=settings.job_idle_s,
        attempts=settings.job_attempts,
        retry_s=settings.job_retry_s,
        poll_s=settings.job_poll_s,
        stop_s=settings.stop_wait_s,
    )


def _writer_tools(services: Services, limits: BufferLimits) -> WriterTools:
    return WriterTools(
        redis=services.redis,
        store=services.store,
        model=WatchedModel(services.engine, services.metrics, model_id=services.model, operation="memory_write"),
        profile=services.profile,
        splitter=services.splitter,
        metrics=services.metrics,
        limits=limits,
        traces=services.traces,
        served=Served(services.model, services.profile.ref),
    )


async def _sweep_for_ever(files: FileRecords | None, every_s: float) -> None:
    """Delete files that have expired and contents that nobody holds."""
    while files is not None:
        try:
            await files.delete_expired()
            await files.blobs.sweep()
        except DependencyError as error:
            _LOG.warning("sweep: %s", error.message)
        await asyncio.sleep(every_s)


async def _gauges(services: Services) -> None:
    """Keep the gauges of queues and Redis fresh."""
    while True:
        try:
            await _look(services.jobs, services.redis, services.metrics)
        except DependencyError as error:
            _LOG.warning("queue depth: %s", error.message)
        await asyncio.sleep(_GAUGE_EVERY_S)


async def _look(jobs: Jobs, redis: Redis, metrics: Metrics) -> None:
    for queue in jobs.queues:
        depth, now_s = await queue.depth(), time.time()
        metrics.show_queue(queue.name, depth, now_s=now_s)
        if queue is jobs.memory:
            metrics.show_memory_queue(depth, now_s=now_s)
    metrics.job_dead_letters.set(await jobs.dead())
    metrics.show_redis(await redis_state(redis))


def _end_process_on_fault(work: "asyncio.Task[None]") -> None:
    if not work.cancelled() and work.exception() is not None:
        _LOG.critical("the worker's loop ended by a fault", exc_info=work.exception())
        os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run until a signal."""
    settings = WorkerSettings()
    start_tracing("memloop-worker")
    run(build_app(settings), settings)


if __name__ == "__main__":
    main()
