"""The runner on real Redis with jobs made of Python: concurrency, retries, dead letters, stopping."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from gateway.queue.handling import JobCancelled, JobResult, RunnerOptions, is_outage
from gateway.queue.runner import Hold, Runner
from memloop.wire.errors import (
    Conflict,
    EngineError,
    MemloopError,
    NotFound,
    RateLimited,
    Timeout,
    Unavailable,
    UnreadableAnswer,
)
from memloop_state.queue.jobs import JobGone, Lease, Submission, Worker
from memloop_state.queue.lanes import LaneQueue
from tests.fakes.processes import PATIENCE_S
from tests.fakes.redis_server import RedisServer
from tests.gateway.redis_view import connected
from tests.gateway.rig import eventually

QUICK = RunnerOptions(
    concurrency=4, lease_s=60, idle_s=60, attempts=3, outages=5, crashes=2, retry_s=0.01, poll_s=0.05, stop_s=60
)
Work = Callable[[Lease, Hold], Awaitable[None]]


async def nothing(lease: Lease, hold: Hold) -> None:
    """A job that is done at once."""


@dataclass
class Handler:
    """Runs ``work`` and remembers how each job ended."""

    work: Work = nothing
    runs: Counter[str] = field(default_factory=Counter[str])
    order: list[str] = field(default_factory=list[str])
    buried: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    cancels: list[str] = field(default_factory=list[str])

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        self.runs[lease.job_id] += 1
        await self.work(lease, hold)
        self.order.append(lease.job_id)
        return JobResult("completed", "{}")

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        self.buried[lease.job_id] = (error.message, attempts)
        return JobResult("failed", "{}", keep_ms=0)

    async def cancelled(self, lease: Lease) -> JobResult:
        self.cancels.append(lease.job_id)
        return JobResult("cancelled", "{}")


QUEUE = "runner-test"
"""A queue that no worker serves: one that is left over from another test cannot take its jobs."""


@pytest.fixture
async def queue(redis_url: str) -> AsyncIterator[LaneQueue]:
    async with connected(redis_url) as client:
        yield LaneQueue(client, QUEUE)


@asynccontextmanager
async def running(
    queue: LaneQueue, handler: Handler, *, options: RunnerOptions = QUICK, worker: str = "one"
) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(Runner(queue, handler, options, worker=worker).run(stop))
    try:
        yield
    finally:
        stop.set()
        await task


def index(queue: LaneQueue) -> str:
    """Beside the jobs: an id that tells no place lies in the first partition."""
    return queue.keys.partitions[0].key("events", "t", "u")


async def submit(queue: LaneQueue, job_id: str, lane: str = "lane") -> None:
    await queue.submit(Submission(job_id, lane, int(time.time() * 1000), index(queue), {"status": "queued"}))


async def drained(queue: LaneQueue) -> None:
    async def empty() -> bool:
        return (await queue.depth()).jobs == 0

    await eventually(empty)


async def test_two_workers_never_run_one_job_and_never_two_of_a_lane_at_once(queue: LaneQueue) -> None:
    active: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def work(lease: Lease, hold: Hold) -> None:
        del hold
        lane = lease.lane
        active[lane] += 1
        most[lane] = max(most[lane], active[lane])
        await asyncio.sleep(0.005)
        active[lane] -= 1

    handler = Handler(work)
    for number in range(40):
        await submit(queue, f"{number:02}", f"lane{number % 5}")
    async with running(queue, handler, worker="one"), running(queue, handler, worker="two"):
        await drained(queue)
    assert set(handler.runs.values()) == {1}
    assert len(handler.runs) == 40
    assert set(most.values()) == {1}
    assert all(
        [job for job in handler.order if int(job) % 5 == lane] == [f"{n:02}" for n in range(lane, 40, 5)]
        for lane in range(5)
    )


async def test_no_more_jobs_run_at_once_than_are_allowed(queue: LaneQueue) -> None:
    active, most = 0, 0
    full = asyncio.Event()

    async def work(lease: Lease, hold: Hold) -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        if active == QUICK.concurrency:
            full.set()
        await full.wait()
        await asyncio.sleep(0.01)
        active -= 1

    for number in range(12):
        await submit(queue, str(number), str(number))
    async with running(queue, Handler(work)):
        await drained(queue)
    assert most == QUICK.concurrency == 4


async def test_a_job_much_longer_than_lease_and_idle_time_runs_once(queue: LaneQueue) -> None:
    short = replace(QUICK, lease_s=4, idle_s=4)

    async def work(lease: Lease, hold: Hold) -> None:
        await asyncio.sleep(9)

    handler = Handler(work)
    await submit(queue, "long")
    async with running(queue, handler, options=short), running(queue, handler, options=short, worker="two"):
        await drained(queue)
    assert handler.runs == {"long": 1}


async def test_failures_are_tried_again_up_to_the_cap_and_then_buried_once(queue: LaneQueue) -> None:
    async def work(lease: Lease, hold: Hold) -> None:
        raise ValueError("broken")

    handler = Handler(work)
    await submit(queue, "bad")
    async with running(queue, handler):
        await drained(queue)
    assert handler.runs == {"bad": 3}
    assert handler.buried == {"bad": ("ValueError: broken", 3)}


async def test_outages_do_not_count_as_attempts_but_have_a_cap_of_their_own(queue: LaneQueue) -> None:
    async def work(lease: Lease, hold: Hold) -> None:
        raise Unavailable("the engine is down")

    handler = Handler(work)
    await submit(queue, "job")
    async with running(queue, handler):
        await drained(queue)
    assert handler.runs == {"job": 5}
    assert handler.buried == {"job": ("the engine is down", 1)}


async def test_later_jobs_of_a_lane_wait_while_its_head_is_tried_again(queue: LaneQueue) -> None:
    tries = iter([Unavailable("down"), Unavailable("down"), None])

    async def work(lease: Lease, hold: Hold) -> None:
        problem = next(tries, None) if lease.job_id == "first" else None
        if problem is not None:
            raise problem

    handler = Handler(work)
    for job_id in ("first", "second", "third"):
        await submit(queue, job_id)
    async with running(queue, handler):
        await drained(queue)
    assert handler.order == ["first", "second", "third"]


async def test_a_stale_fencing_token_gives_the_job_back_uncounted(queue: LaneQueue) -> None:
    tries = iter([Conflict("stale")])

    async def work(lease: Lease, hold: Hold) -> None:
        problem = next(tries, None)
        assert lease.failures == 0
        if problem is not None:
            raise problem

    handler = Handler(work)
    await submit(queue, "job")
    async with running(queue, handler):
        await drained(queue)
    assert handler.order == ["job"]
    assert handler.buried == {}


async def test_a_job_that_kills_its_workers_is_buried_after_the_cap(queue: LaneQueue) -> None:
    await submit(queue, "killer")
    for round_ in range(3):
        await asyncio.sleep(0.02)
        dead = Worker("dead", lease_ms=100, idle_ms=10)
        assert await (queue.claim(dead) if round_ else queue.take(dead)) is not None, await queue.depth()
    handler = Handler()
    async with running(queue, handler, options=replace(QUICK, idle_s=0.05)):
        await drained(queue)
    assert handler.runs == {}
    assert list(handler.buried) == ["killer"]


async def test_an_erased_job_stops_and_is_not_retried(queue: LaneQueue) -> None:
    started = asyncio.Event()
    stopped = asyncio.Event()

    async def work(lease: Lease, hold: Hold) -> None:
        started.set()
        try:
            await asyncio.sleep(300)
        finally:
            stopped.set()

    handler = Handler(work)
    await submit(queue, "job")
    async with running(queue, handler):
        await started.wait()
        await queue.forget("lane", "job")
        await asyncio.wait_for(stopped.wait(), PATIENCE_S)
        await drained(queue)
    assert handler.runs == {"job": 1}


async def test_a_cancelled_job_stops_and_ends_as_cancelled(queue: LaneQueue) -> None:
    started = asyncio.Event()

    async def work(lease: Lease, hold: Hold) -> None:
        started.set()
        await asyncio.sleep(300)

    handler = Handler(work)
    await submit(queue, "job")
    async with running(queue, handler):
        await started.wait()
        assert await queue.cancel("lane", "job", record="{}", keep_ms=1000) == "asked"
        await drained(queue)
    assert handler.cancels == ["job"]


@pytest.mark.parametrize("leaving", [JobCancelled, JobGone])
async def test_a_handler_that_notices_itself_ends_the_job_too(queue: LaneQueue, leaving: type[Exception]) -> None:
    async def work(lease: Lease, hold: Hold) -> None:
        if leaving is JobGone:
            await queue.forget("lane", "job")
        raise leaving

    handler = Handler(work)
    await submit(queue, "job")
    async with running(queue, handler):
        await drained(queue)
    assert handler.runs == {"job": 1}
    assert handler.buried == {}


async def test_a_stop_waits_for_jobs_and_gives_back_what_takes_too_long(queue: LaneQueue) -> None:
    async def work(lease: Lease, hold: Hold) -> None:
        await asyncio.sleep(0.05 if lease.job_id == "quick" else 300)

    handler = Handler(work)
    await submit(queue, "quick", "a")
    await submit(queue, "slow", "b")
    async with running(queue, handler, options=replace(QUICK, stop_s=3)):
        await eventually(lambda: len(handler.runs) == 2)
    assert handler.order == ["quick"]
    assert (await queue.depth()).jobs == 1
    again = Handler()
    async with running(queue, again, worker="two"):
        await drained(queue)
    assert again.order == ["slow"]


async def test_a_redis_that_restarts_in_the_middle_loses_no_job() -> None:
    server = RedisServer.start(appendonly=True)
    gate = asyncio.Event()

    async def work(lease: Lease, hold: Hold) -> None:
        await gate.wait()

    handler = Handler(work)
    async with connected(server.url) as client:
        queue = LaneQueue(client, QUEUE)
        for number in range(3):
            await submit(queue, str(number))
        async with running(queue, handler, options=replace(QUICK, idle_s=1)):
            await eventually(lambda: bool(handler.runs))
            server.kill()
            gate.set()
            await asyncio.sleep(0.2)
            server = RedisServer.start(port=server.port, folder=server.folder, appendonly=True)
            await drained(queue)
    server.stop()
    assert handler.order[0] == "0"
    assert handler.order[-2:] == ["1", "2"]


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (Unavailable("x"), True),
        (Timeout("x"), True),
        (RateLimited("x"), True),
        (EngineError("x", engine_status=500), True),
        (EngineError("x", engine_status=401), True),
        (EngineError("x", engine_status=404), True),
        (EngineError("x", engine_status=400), False),
        (UnreadableAnswer("x"), False),
        (NotFound("x"), False),
        (ValueError("x"), False),
    ],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'engine_status', '')}",
)
def test_what_counts_as_an_outage(error: Exception, outage: bool) -> None:
    assert is_outage(error) is outage


async def test_a_job_that_a_stopping_worker_gets_goes_to_another_at_once(queue: LaneQueue) -> None:
    patient = replace(QUICK, lease_s=3600, idle_s=3600, poll_s=1.0)
    handler, stop = Handler(), asyncio.Event()
    stopping = asyncio.create_task(Runner(queue, handler, patient, worker="one").run(stop))
    await asyncio.sleep(0.3)  # it waits for lanes by now
    stop.set()
    await submit(queue, "job")
    await stopping
    assert handler.runs == {}
    async with running(queue, handler, options=patient, worker="two"):
        await eventually(lambda: handler.runs == {"job": 1})
