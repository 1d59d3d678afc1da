"""The jobs half of the gateway on real Redis, with a scripted engine and a small store on real ports."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr
from redis.asyncio import Redis

from gateway.engine import read_models
from gateway.memory.jobs import MemoryJob, MemoryQueue, new_event_id
from gateway.metrics import Metrics
from gateway.policy import keeper_of
from gateway.queue import Lease, QueueRules
from gateway.settings import WorkerSettings
from gateway.worker import Work, open_work, working
from memloop.wire.memory import Namespace, Source
from memloop.wire.memory_events import MemoryEvent
from memloop_service import new_registry
from memloop_state.queue.jobs import Worker
from tests.fakes.given_settings import given_settings
from tests.fakes.job_engine import Body, EngineServer, Reply, engine_server
from tests.fakes.job_store import StoreServer, store_server
from tests.fakes.processes import PATIENCE_S

ALICE = Namespace(tenant="local", user_id="alice")
ONE_WORKER = Worker("w", lease_ms=600_000, idle_ms=600_000)


def turns(*texts: str) -> tuple[Source, ...]:
    """User turns."""
    return tuple(Source(role="user", content=text) for text in texts)


async def enqueued(
    queue: MemoryQueue,
    said: Sequence[Source] = (),
    *,
    namespace: Namespace = ALICE,
    infer: bool = True,
    settles: bool = False,
    event_id: str | None = None,
    **given: Any,
) -> str:
    """Queue a write, without turns a flush, and return the id of its event."""
    job_id = event_id or new_event_id(namespace)
    job = MemoryJob(event_id=job_id, namespace=namespace, turns=tuple(said), infer=infer, settles=settles, **given)
    await queue.enqueue(job)
    return job_id


async def leased(queue: MemoryQueue, namespace: Namespace = ALICE) -> Lease:
    """Begin the first write of the namespace's lane, as a worker does."""
    lease = await queue.lanes.take(ONE_WORKER, partition=queue.lanes.keys.of_name(namespace.lane()))
    assert lease is not None
    return lease


@dataclass
class Rig:
    """Everything that a test touches."""

    settings: WorkerSettings
    work: Work
    engine: EngineServer
    store: StoreServer

    @property
    def writes(self) -> MemoryQueue:
        return self.work.memory.queue

    async def write(self, *texts: str, namespace: Namespace = ALICE) -> str:
        return await enqueued(self.writes, turns(*texts), namespace=namespace)

    async def event(self, event_id: str, *, timeout_s: float = PATIENCE_S) -> MemoryEvent:
        """The event once it ended."""
        return await self.writes.events.wait("local", event_id, timeout_s=timeout_s)

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """A worker in this process meanwhile."""
        async with working(self.work, self.settings):
            yield


def settings_for(redis_url: str, **changes: object) -> WorkerSettings:
    """Settings of a worker or an API with retries as quick as tests want them.

    Leases and time limits are long: a machine that stalls for a moment changes nothing.
    """
    values: dict[str, object] = {
        "redis_url": SecretStr(redis_url),
        "model": "m",
        "startup_wait_s": 60.0,
        "job_retry_s": 0.02,
        "job_poll_s": 0.1,
        "job_attempts": 3,
        "heartbeat_s": 0.2,
        "sync_wait_s": 60.0,
        "redis_timeout_s": 30.0,
        "recall_timeout_s": 30.0,
        "enqueue_timeout_s": 30.0,
    }
    return given_settings(WorkerSettings, values | changes)


@asynccontextmanager
async def rig(
    redis_url: str, answer: Callable[[Body], Reply], *, hang_at: int | None = None, **changes: object
) -> AsyncGenerator[Rig]:
    """A rig with nothing in it and no worker."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(engine_server(answer, hang_at=hang_at))
        store = await stack.enter_async_context(store_server())
        settings = settings_for(redis_url, **{"engine_url": engine.url, "store_url": store.url, **changes})
        work = await stack.enter_async_context(open_work(read_models(settings), settings, Metrics(new_registry())))
        yield Rig(settings, work, engine, store)


def script(*replies: Reply) -> Callable[[Body], Reply]:
    """These replies in order; the last one again and again."""
    left: list[Reply] = list(replies)

    def answer(body: Body) -> Reply:
        del body
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


async def eventually(
    holds: Callable[[], Awaitable[bool]] | Callable[[], bool], *, timeout_s: float = PATIENCE_S
) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = holds()
        if found if isinstance(found, bool) else await found:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"it did not come true within {timeout_s} s")


def memory_queue(redis: Redis) -> MemoryQueue:
    """The queue of memory writes by itself."""
    metrics = Metrics(new_registry())
    keeper = keeper_of(WorkerSettings(), redis, metrics)
    return MemoryQueue(redis, rules=QueueRules(), refused=metrics.memory_writes_not_admitted, keeper=keeper)


def contents(sources: Sequence[Source]) -> list[str]:
    """The texts of turns."""
    return [source.content for source in sources]
