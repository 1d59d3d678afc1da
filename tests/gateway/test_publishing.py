"""Events of a background read go out in order, one behind the loop, and no failure of theirs is lost."""

import asyncio

import pytest

from gateway.long_read.hosts import published_behind
from memloop.wire.long_read import LongRead, ReadEvent, ReadStatus
from memloop_state.queue.jobs import JobGone


def record(status: ReadStatus = "in_progress") -> LongRead:
    return LongRead(id="lr_1", status=status, created_at=0, model="m", strategy="memagent")


def event(number: int) -> ReadEvent:
    return ReadEvent(type="long_read.chunk.completed", sequence_number=number)


class Slow:
    """Publishes when it is let, and keeps what it published."""

    def __init__(self, *, fails: bool = False) -> None:
        self.let = asyncio.Event()
        self.told: list[int] = []
        self._fails = fails

    async def __call__(self, event: ReadEvent, record: LongRead) -> None:
        del record
        await self.let.wait()
        if self._fails:
            raise JobGone
        self.told.append(event.sequence_number)


async def test_the_loop_goes_on_while_an_event_goes_out_and_the_next_waits_for_it() -> None:
    slow = Slow()
    async with published_behind(slow) as publish:
        await publish(event(1), record())
        second = asyncio.ensure_future(publish(event(2), record()))
        await asyncio.sleep(0)
        assert (slow.told, second.done()) == ([], False)
        slow.let.set()
        await second
    assert slow.told == [1, 2]


async def test_the_terminal_event_is_out_when_its_call_returns() -> None:
    slow = Slow()
    slow.let.set()
    async with published_behind(slow) as publish:
        await publish(event(1), record())
        await publish(event(2), record("completed"))
        assert slow.told == [1, 2]


async def test_a_failure_is_raised_at_the_next_event() -> None:
    slow = Slow(fails=True)
    slow.let.set()
    async with published_behind(slow) as publish:
        await publish(event(1), record())
        with pytest.raises(JobGone):
            await publish(event(2), record())


async def test_the_last_event_is_waited_for_when_the_loop_fails() -> None:
    slow = Slow()
    slow.let.set()

    async def broken_loop() -> None:
        async with published_behind(slow) as publish:
            await publish(event(1), record())
            raise ValueError("the loop")

    with pytest.raises(ValueError, match="the loop"):
        await broken_loop()
    assert slow.told == [1]
