"""The worker process: runs the jobs that the API queued in Redis. Run: ``python -m gateway.worker``.

Its HTTP port serves health and metrics only.
"""

import asyncio
import logging
import os
import secrets
import signal
import socket
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from fastapi import FastAPI
from redis.asyncio import Redis

from gateway.changes.hooks import Dispatcher
from gateway.chat import Chat
from gateway.engine import Backend, LoopModel, ModelsConfig, Rollouts, open_backend, read_models, refusing_wrong_models
from gateway.files.extraction import ExtractionLimits, ExtractionRules
from gateway.files.files import FileHandler, open_files
from gateway.files.storage import local_folder
from gateway.long_read.hosts import ReadHandler
from gateway.long_read.reading import Reading, open_reading
from gateway.memory.handler import MemoryHandler
from gateway.memory.memory import OPTIONAL, Memory, Readiness, open_memory
from gateway.memory.operations import flush_idle_repeatedly
from gateway.memory.rounds import BufferLimits
from gateway.memory.write import WriterTools
from gateway.metrics import Metrics
from gateway.queue import LaneQueue, Runner, RunnerOptions, queued_bytes, state_of
from gateway.responses.background.jobs import Background, ResponseHandler, open_background
from gateway.settings import WorkerSettings
from gateway.usage.routes import Ledger
from gateway.vector_stores import VectorStores, open_vector_stores
from gateway.vector_stores.indexing import IndexHandler
from gateway.webhooks.deliveries import DeliveryHandler
from gateway.webhooks.webhooks import open_webhooks
from memloop.chores import ended
from memloop.wire.errors import DependencyError
from memloop_service import create_app, new_registry, run, start_tracing, watch_disk
from memloop_service.http.admission import Admission, Capacity
from memloop_state.room import redis_state

_LOG = logging.getLogger(__name__)
_GAUGE_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Work:
    """The slices that jobs use."""

    state: Redis
    backend: Backend
    memory: Memory
    reading: Reading
    background: Background
    vector_stores: VectorStores
    chat: Chat
    metrics: Metrics

    @property
    def queues(self) -> Sequence[LaneQueue]:
        """Every queue, memory writes first."""
        return (
            self.memory.queue.lanes,
            self.reading.queue,
            self.reading.files.queue,
            self.reading.webhooks.queue,
            self.background.queue,
            self.vector_stores.queue,
        )


@asynccontextmanager
async def open_work(config: ModelsConfig, settings: WorkerSettings, metrics: Metrics) -> AsyncGenerator[Work]:
    """Open the slices of one worker and close them on exit.

    Raises ProfileError as ``open_backend`` does.
    """
    async with (
        state_of(settings) as redis,
        open_backend(config, settings, metrics) as backend,
        open_memory(settings, redis, metrics=metrics) as memory,
    ):
        rules = memory.queue.lanes.rules
        files, webhooks = open_files(settings, redis, rules), open_webhooks(settings, redis, rules)
        reading = open_reading(settings, redis, backend=backend, memory=memory, files=files, webhooks=webhooks)
        background = open_background(settings, redis, rules, metrics)
        no_clients = Admission(Capacity(0, 0, 0), Capacity(0, 0, 0), lambda limit: None)
        chat = Chat(settings, backend, memory, no_clients)
        searched = open_vector_stores(settings, redis, rules, files=files, store=memory.store, keeper=memory.keeper)
        async with Ledger(redis, metrics).keeping(), Rollouts(redis, backend.models, metrics).following():
            yield Work(redis, backend, memory, reading, background, searched, chat, metrics)


def build_app(settings: WorkerSettings) -> FastAPI:
    """Build the worker's application; its lifespan runs the job queues. Raises as ``read_models`` does."""
    config = read_models(settings)
    metrics = Metrics(registry := new_registry())
    opened: list[Work] = []

    def there() -> Work:
        if not opened:  # readiness is asked before the slices are open
            raise DependencyError("The worker is starting.")
        return opened[0]

    ready = Readiness(there, writes=True)
    if (documents := local_folder(settings.storage_url)) is not None:
        watch_disk(registry, documents)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with open_work(config, settings, metrics) as work:
            opened.append(work)
            async with working(work, settings):
                yield

    return create_app(
        "memloop-worker",
        settings=settings,
        readiness=ready.checks,
        optional=OPTIONAL,
        warnings=ready.warnings,
        details=ready.details,
        registry=registry,
        lifespan=lifespan,
    )


@asynccontextmanager
async def working(work: Work, settings: WorkerSettings) -> AsyncGenerator[None]:
    """Run the queues until the block exits. An unexpected error ends the process."""
    stop = asyncio.Event()
    task = asyncio.create_task(_work(work, settings, stop))
    task.add_done_callback(_end_process_on_fault)
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait({task})


async def _work(work: Work, settings: WorkerSettings, stop: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        group.create_task(_writes(work, settings, stop, name))
        for runner in _runners(work, settings, name):
            group.create_task(runner.run(stop))
        gauges = group.create_task(_gauges(work))
        idle = group.create_task(flush_idle_repeatedly(work.memory, age_s=settings.buffer_flush_age_s))
        sweep = group.create_task(_sweep_repeatedly(work, settings.sweep_every_s))
        changes = group.create_task(
            Dispatcher(work.state, work.memory.store, work.reading.webhooks.queue, work.metrics).run(
                every_s=settings.memory_webhook_poll_s
            )
        )
        await stop.wait()
        await ended({gauges, idle, sweep, changes})


async def _writes(work: Work, settings: WorkerSettings, stop: asyncio.Event, name: str) -> None:
    """Run the memory writes once their model is there; until then they wait in their queue."""
    writer, stopped = asyncio.create_task(work.backend.models.writer()), asyncio.create_task(stop.wait())
    await asyncio.wait({writer, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not writer.done():
        writer.cancel()
        return
    model, models, memory = writer.result(), work.backend.models, work.memory
    work.metrics.show_form(model.id, model.forms.left(model.window.profile)[0])

    def tools_of(writer: LoopModel) -> WriterTools:
        return WriterTools(
            memory.queue.lanes.journal,
            memory.store,
            writer,
            writer.watched(work.metrics, operation="memory_write"),
            work.metrics,
            BufferLimits(settings.buffer_flush_turns, settings.buffer_flush_tokens),
            memory.traces,
            memory.keeper,
        )

    only, options = tools_of(model), _options(settings, settings.worker_concurrency)
    handler = MemoryHandler(
        memory.queue.lanes,
        work.metrics,
        (lambda namespace: tools_of(models.serving(model.id, key=namespace.lane())))
        if models.may_have_candidates
        else lambda _: only,
        failures=memory.failures,
        kept=memory.kept,
        options=options,
        keep_ms=int(settings.dead_letter_keep_s * 1000),
        redecisions=settings.memory_redecisions,
    )
    await Runner(work.memory.queue.lanes, handler, options, worker=name).run(stop)


def _runners(work: Work, settings: WorkerSettings, name: str) -> Iterator[Runner]:
    reading = work.reading
    options = _options(settings, settings.read_concurrency)
    yield Runner(reading.queue, ReadHandler(reading), options, worker=name)
    responses = ResponseHandler(work.background, work.chat, work.vector_stores)
    yield Runner(work.background.queue, responses, options, worker=name)
    attempts = replace(
        _options(settings, settings.webhook_concurrency),
        attempts=settings.webhook_attempts,
        retry_s=settings.webhook_retry_s,
        max_delay_s=3600.0,
    )
    webhooks = reading.webhooks
    deliveries = DeliveryHandler(work.state, webhooks.rules, work.metrics, timeout_s=settings.webhook_timeout_s)
    yield Runner(webhooks.queue, deliveries, attempts, worker=name)
    if reading.files.records is not None:
        most = ExtractionLimits(
            memory_bytes=settings.extract_memory_bytes,
            cpu_s=settings.extract_cpu_s,
            wall_s=settings.extract_wall_s,
            text_bytes=settings.max_text_bytes,
            ocr=settings.ocr,
        )
        files = FileHandler(
            reading.files.records, ExtractionRules(most, settings.extract_base_cpu_s, settings.extract_cpu_s_per_mib)
        )
        options = _options(settings, settings.extract_concurrency)
        yield Runner(reading.files.queue, files, options, worker=name)
        yield Runner(work.vector_stores.queue, IndexHandler(work.vector_stores), options, worker=name)


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


async def _sweep_repeatedly(work: Work, every_s: float) -> None:
    """Delete expired dead letters, files and contents without holders; decide again on kept writes. Repeatedly."""
    letters, files = work.memory.queue.lanes.letters, work.reading.files.records
    while True:
        try:
            await letters.sweep()
            await work.memory.kept.redecide_due(work.memory.queue)
            if files is not None:
                await files.delete_expired()
                await files.blobs.sweep()
            await work.vector_stores.sweep()
        except DependencyError as error:
            _LOG.warning("sweep: %s", error.message)
        await asyncio.sleep(every_s)


async def _gauges(work: Work) -> None:
    """Refresh the gauges of queues and Redis, repeatedly."""
    while True:
        try:
            metrics = work.metrics
            for queue in work.queues:
                depth, now_s = await queue.depth(), time.time()
                metrics.show_queue(queue.name, depth, now_s=now_s)
                if queue is work.memory.queue.lanes:
                    metrics.show_memory_queue(depth, now_s=now_s)
            metrics.job_dead_letters.set(await work.memory.queue.lanes.letters.count())
            metrics.show_queued_bytes(await queued_bytes(work.state))
            metrics.show_redis(await redis_state(work.state))
        except DependencyError as error:
            _LOG.warning("queue depth: %s", error.message)
        await asyncio.sleep(_GAUGE_EVERY_S)


def _end_process_on_fault(work: "asyncio.Task[None]") -> None:
    if not work.cancelled() and work.exception() is not None:
        _LOG.critical("the worker's loop ended with an unexpected error", exc_info=work.exception())
        os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run until a signal."""
    settings = WorkerSettings.read()
    start_tracing("memloop-worker")
    with refusing_wrong_models():
        app = build_app(settings)
    run(app, settings)


if __name__ == "__main__":
    main()
