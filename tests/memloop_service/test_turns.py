"""Long bodies are computed with in one thread, tenants in turn, while the event loop goes on."""

import asyncio
import threading
import time

import pytest

from memloop_service.turns import INLINE_BYTES, REST, TENANT, TURNS, Turns, in_turn


class Work:
    """Computations that wait in their thread until they are let go, and the order in which they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.go = threading.Event()
        self.threads: set[int] = set()

    def __call__(self, name: str) -> str:
        self.go.wait()
        self.ran.append(name)
        self.threads.add(threading.get_ident())
        return name


async def _asked(turns: Turns, work: Work, *names: str) -> list["asyncio.Task[str]"]:
    tasks = [asyncio.create_task(turns.run(name[0], lambda name=name: work(name))) for name in names]
    await asyncio.sleep(0)
    return tasks


async def test_tenants_take_turns_in_one_thread() -> None:
    turns, work = Turns(), Work()
    tasks = await _asked(turns, work, "a1", "a2", "a3", "b1", "c1", "b2")
    work.go.set()
    assert await asyncio.gather(*tasks) == ["a1", "a2", "a3", "b1", "c1", "b2"]
    assert work.ran == ["a1", "a2", "b1", "c1", "a3", "b2"]
    assert len(work.threads) == 1
    assert threading.get_ident() not in work.threads


async def test_one_that_was_cancelled_while_it_waited_never_runs() -> None:
    turns, work = Turns(), Work()
    first, waiting, last = await _asked(turns, work, "a1", "b1", "c1")
    waiting.cancel()
    work.go.set()
    assert [await first, await last] == ["a1", "c1"]
    assert work.ran == ["a1", "c1"]


async def test_one_that_was_cancelled_while_it_ran_keeps_its_turn_to_its_end() -> None:
    turns, work = Turns(), Work()
    first, last = await _asked(turns, work, "a1", "b1")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert work.ran == []
    work.go.set()
    assert await last == "b1"
    assert work.ran == ["a1", "b1"]


async def test_a_cancellation_at_the_moment_of_its_turn_gives_the_turn_to_the_next() -> None:
    turns, work = Turns(), Work()
    work.go.set()
    first, second, third = await _asked(turns, work, "a1", "b1", "c1")
    first.add_done_callback(lambda _: second.cancel())
    assert [await first, await third] == ["a1", "c1"]


async def test_errors_reach_the_caller_and_free_the_turn() -> None:
    turns = Turns()

    def fail() -> None:
        raise ValueError("too deep")

    with pytest.raises(ValueError, match="too deep"):
        await turns.run("a", fail)
    assert await turns.run("a", lambda: 1) == 1


async def test_a_short_body_does_not_wait_for_a_long_one() -> None:
    turns, work = Turns(), Work()
    scope = {TURNS: turns, TENANT: "b"}
    [long] = await _asked(turns, work, "a1")
    assert await in_turn(scope, INLINE_BYTES, threading.get_ident) == threading.get_ident()
    beside = asyncio.create_task(in_turn(scope, INLINE_BYTES + 1, threading.get_ident))
    work.go.set()
    await long
    assert await beside != threading.get_ident()


class Clock:
    """A clock that only computations put forward."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def compute(self, seconds: float) -> float:
        """Seem to take that long; the real time at the end."""
        self.now += seconds
        return time.monotonic()


@pytest.mark.parametrize("tenant", ["a", "b"], ids=["the same tenant", "another tenant"])
async def test_a_long_computation_is_followed_by_a_rest_of_three_times_its_length(tenant: str) -> None:
    clock = Clock()
    turns = Turns(clock)
    ended = await turns.run("a", lambda: clock.compute(0.1))
    assert await turns.run(tenant, lambda: clock.compute(0.0)) - ended >= REST * 0.1


async def test_a_rest_is_never_longer_than_half_a_second() -> None:
    clock = Clock()
    turns = Turns(clock)
    await turns.run("a", lambda: clock.compute(3600.0))
    async with asyncio.timeout(60.0):
        await turns.run("a", lambda: clock.compute(0.0))
