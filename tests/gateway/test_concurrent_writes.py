"""Parallel adds, several worker processes, ``kill -9`` at random moments: no fact is lost, none is doubled."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from memloop.wire.memory import ItemPage
from memloop.wire.memory_events import MemoryEvent
from tests.fakes.job_engine import Body, Reply, last_text, tool_call
from tests.fakes.real_store import real_store
from tests.gateway.rig import Rig, rig
from tests.gateway.running import Gateway, running_gateway
from tests.gateway.worker_process import worker_process

WORKERS = 3
SIDE_BY_SIDE = 10
MOST_CALLS_BETWEEN = 10
EVENT_TIMEOUT_S = 600.0

pytestmark = pytest.mark.timeout(900)


def remember(body: Body) -> Reply:
    """A memory writer that keeps every turn as a fact of its own name."""
    fact = last_text(body).rpartition("): ")[2]
    draft: Body = {"key": fact, "memory_type": "UserMemory", "value": fact, "tags": []}
    return tool_call("add_memory", memory_list=[draft], summary="kept")


class Fleet:
    """Worker processes; any of them can be killed, and a new one takes its place."""

    def __init__(self, it: Rig, seed: int) -> None:
        self._it = it
        self._random = random.Random(seed)
        self._workers = [AsyncExitStack() for _ in range(WORKERS)]
        self.kills = 0

    async def start(self) -> None:
        """All of them."""
        for stack in self._workers:
            await stack.enter_async_context(worker_process(self._it))

    async def kill_at_random(self) -> None:
        """One after another, for ever, after a few decisions each. Leaving a worker's context is SIGKILL.

        On a busy machine a worker takes longer to start than any fixed time between two kills.
        """
        while True:
            wanted = len(self._it.engine.calls) + self._random.randint(1, MOST_CALLS_BETWEEN)
            while len(self._it.engine.calls) < wanted:  # noqa: ASYNC110 - the engine counts, it does not call
                await asyncio.sleep(0.01)
            await asyncio.sleep(self._random.uniform(0.1, 2.0))
            stack = self._random.choice(self._workers)
            await stack.aclose()
            await stack.enter_async_context(worker_process(self._it))
            self.kills += 1

    async def stop(self) -> None:
        """Kill all."""
        for stack in self._workers:
            await stack.aclose()


@dataclass(frozen=True)
class Stack:
    """Redis, store and engine, the gateway's API, and its workers."""

    it: Rig
    gateway: Gateway
    fleet: Fleet

    async def add(self, user: str, fact: str) -> str:
        """A queued write; its event id."""
        body = {"user_id": user, "messages": [{"role": "user", "content": fact}]}
        answer = await self.gateway.post("/v1/memory/add", body)
        assert answer.status == 202, answer.raw
        return answer.json["event_id"]

    async def trial(self, user: str, facts: Sequence[str]) -> None:
        """All facts at once; afterwards each is remembered once, and each turn is kept once."""
        ids = await asyncio.gather(*(self.add(user, fact) for fact in facts))
        events = await asyncio.gather(*(self.it.event(event_id, timeout_s=EVENT_TIMEOUT_S) for event_id in ids))
        assert [_state(event) for event in events] == ["completed"] * len(facts)
        live, raw = await self.kept(user)
        assert live == Counter(set(facts))
        assert raw == Counter(facts)

    async def kept(self, user: str) -> "tuple[Counter[str], Counter[str]]":
        """The user's live memories and raw turns, by text."""
        params = {"tenant": "local", "user_id": user, "include_raw": "true", "limit": "500"}
        async with self.gateway.http.get(f"{self.it.settings.store_url}/v1/items", params=params) as response:
            page = ItemPage.model_validate_json(await response.read())
        raw = Counter(item.memory for item in page.items if item.memory_type == "RawTurn")
        return Counter(item.memory for item in page.items) - raw, raw


def _state(event: MemoryEvent) -> str:
    return event.status if event.error is None else f"{event.status}: {event.error}"


@asynccontextmanager
async def stack_of(redis_url: str, folder: Path, *, seed: int) -> AsyncGenerator[Stack]:
    """A running stack whose workers are killed at random."""
    async with AsyncExitStack() as opened:
        store_url = await opened.enter_async_context(real_store(redis_url, folder))
        it = await opened.enter_async_context(rig(redis_url, remember, store_url=store_url, job_attempts=1))
        it.engine.latency_s = 0.02
        gateway = await opened.enter_async_context(running_gateway(it.settings))
        fleet = Fleet(it, seed)
        opened.push_async_callback(fleet.stop)
        await fleet.start()
        killing = asyncio.create_task(fleet.kill_at_random())
        opened.push_async_callback(_ended, killing)
        yield Stack(it, gateway, fleet)


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def facts_of(user: str) -> list[str]:
    """One fact five times, and five others."""
    return [f"{user} likes tea."] * 5 + [f"{user} owns book {number}." for number in range(5)]


async def run_trials(stack: Stack, trials: int) -> None:
    """So many users, some at a time, each with parallel adds."""
    gate = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(number: int) -> None:
        async with gate:
            await stack.trial(f"user-{number}", facts_of(f"user-{number}"))

    async with asyncio.TaskGroup() as group:
        for number in range(trials):
            group.create_task(one(number))


async def test_fifty_parallel_adds_of_one_fact_leave_one_live_memory(redis_url: str, tmp_path: Path) -> None:
    async with stack_of(redis_url, tmp_path, seed=1) as stack:
        await stack.trial("alice", ["Alice likes tea."] * 50)


async def test_parallel_adds_lose_and_double_nothing_while_workers_are_killed(redis_url: str, tmp_path: Path) -> None:
    async with stack_of(redis_url, tmp_path, seed=2) as stack:
        await run_trials(stack, 8)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_a_thousand_trials_lose_and_double_nothing(redis_url: str, tmp_path: Path) -> None:
    async with stack_of(redis_url, tmp_path, seed=3) as stack:
        await run_trials(stack, 1000)
        print(f"1000 trials, 10000 adds, {stack.fleet.kills} kills: 0 lost, 0 doubled")
    assert stack.fleet.kills > 50
