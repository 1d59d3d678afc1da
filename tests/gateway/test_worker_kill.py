"""``kill -9`` of a real worker process in the middle of a memory write: after a restart it completes exactly once."""

import asyncio
import multiprocessing
import signal
from contextlib import suppress
from dataclasses import dataclass

import pytest

from gateway.long_read.records import ReadJob
from gateway.long_read.run import new_record
from memloop.wire.long_read import Document, LongReadRequest
from tests.fakes.job_engine import Body, Reply, add_memory, last_text, tool_call
from tests.fakes.job_store import Hold
from tests.fakes.processes import PATIENCE_S
from tests.gateway.redis_view import stream_length
from tests.gateway.rig import Rig, eventually, rig, script
from tests.gateway.worker_process import worker_process

SEARCH = tool_call("search_memory", query="tea")
BUFFER = tool_call("buffer_memory", reason="half a thought")


@dataclass(frozen=True)
class Kill:
    """Where the worker dies: at an engine call (from 1), or at a store request that the words single out."""

    engine_call: int | None = None
    store: Hold | None = None


def at_store(method: str, path: str, words: str, *, after: bool) -> Kill:
    def matches(found_method: str, found_path: str, body: str) -> bool:
        return (found_method, found_path) == (method, path) and words in body

    return Kill(store=Hold(matches, "after" if after else "before"))


POINTS = {
    "before the raw turns are stored": lambda: at_store("POST", "/v1/items", "RawTurn", after=False),
    "after the raw turns are stored": lambda: at_store("POST", "/v1/items", "RawTurn", after=True),
    "in the first call of the model": lambda: Kill(engine_call=1),
    "in the second call of the model": lambda: Kill(engine_call=2),
    "after the decision, before the add": lambda: at_store("POST", "/v1/items", "UserMemory", after=False),
    "after the add, before the job ended": lambda: at_store("POST", "/v1/items", "UserMemory", after=True),
    "after the buffer was cleared": lambda: at_store("DELETE", "/v1/buffers", "", after=True),
}


async def killed_at(it: Rig, kill: Kill) -> None:
    """Run a worker until it stands at the point, and kill it there."""
    it.engine.hang_at = kill.engine_call
    it.store.hold = kill.store
    reached = it.engine.hanging if kill.store is None else kill.store.reached
    async with worker_process(it) as process:
        async with asyncio.timeout(PATIENCE_S):
            await reached.wait()
        await process.signalled(signal.SIGKILL)
    it.engine.hang_at = None
    it.engine.let_go.set()
    if kill.store is not None:
        kill.store.let_go.set()


async def with_buffered_turn(it: Rig) -> None:
    """A first write that leaves a buffered turn behind."""
    async with it.working():
        await it.event(await it.write("I like"))
    assert it.store.buffered() == ["I like"]
    it.engine.calls.clear()


@pytest.mark.parametrize("point", POINTS)
async def test_a_killed_write_completes_once_after_a_restart(redis_url: str, point: str) -> None:
    kill = POINTS[point]()
    async with rig(redis_url, script(BUFFER, SEARCH, add_memory("Alice likes tea."))) as it:
        await with_buffered_turn(it)
        event_id = await it.write("tea.")
        await killed_at(it, kill)
        assert (await it.writes.events.get("local", event_id)).status == "in_progress"
        async with it.working():
            event = await it.event(event_id)
    assert (event.status, event.attempts) == ("completed", 1)
    assert [record.action for record in event.decisions] == ["search", "add"]
    assert [written.item.memory for written in event.memories] == ["Alice likes tea."]
    assert it.store.writes == ["I like", "tea.", "Alice likes tea."]  # each text was written once, in all
    assert it.store.buffered() == []
    assert len(it.engine.calls) == (3 if kill.engine_call else 2)  # paid replies were replayed


async def test_a_kill_after_the_buffer_was_written_does_not_buffer_the_turns_twice(redis_url: str) -> None:
    async with rig(redis_url, script(BUFFER)) as it:
        await with_buffered_turn(it)
        event_id = await it.write("tea.")
        await killed_at(it, at_store("PUT", "/v1/buffers", "", after=True))
        async with it.working():
            event = await it.event(event_id)
    assert event.status == "completed"
    assert it.store.buffered() == ["I like", "tea."]


async def test_a_restarted_process_takes_up_what_the_killed_one_left_and_later_writes_wait_for_it(
    redis_url: str,
) -> None:
    async with rig(redis_url, script(SEARCH, add_memory("Alice likes tea."), add_memory("Alice has a cat."))) as it:
        first = await it.write("I like tea.")
        second = await it.write("I have a cat.")
        await killed_at(it, Kill(engine_call=2))
        async with worker_process(it) as process:
            assert (await it.event(second)).status == "completed"
            assert (await it.event(first)).status == "completed"
            await process.signalled(signal.SIGTERM)
    assert it.store.texts() == ["Alice likes tea.", "Alice has a cat."]
    await eventually(lambda: it.engine.active == 0)


async def test_a_killed_background_read_goes_on_at_the_chunk_where_it_died(redis_url: str) -> None:
    def reader(body: Body) -> Reply:
        return r"\boxed{In Rome.}" if "boxed" in last_text(body) else "a memory"

    request = LongReadRequest(
        model="m", question="Where?", document=Document(text="one two three. " * 40), chunk_tokens=80, background=True
    )
    job = ReadJob(read_id="lr_killed", tenant="local", model="m", request=request)
    async with rig(redis_url, reader) as it:
        records = it.work.reading.records
        await records.enqueue(job, new_record(job))
        await killed_at(it, Kill(engine_call=3))
        assert (await records.get("local", job.read_id)).progress.chunks_done in (1, 2)  # events go one behind
        async with it.working():
            record = await records.get("local", job.read_id)
            events = [event async for event in it.work.reading.followers.follow(record)]
    assert events[-1].type == "long_read.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    chunks = [event.chunk for event in events if event.type == "long_read.chunk.completed"]
    assert chunks == list(range(4))
    assert len(it.engine.calls) == 6  # four chunks, the answer, and the call that the kill cut off
    assert await stream_length(it.work.state, "*:jobs:reads") == 0


async def test_a_worker_whose_start_is_given_up_takes_no_jobs_of_later_tests(redis_url: str) -> None:
    before = set(multiprocessing.active_children())
    async with rig(redis_url, script()) as it:

        async def started() -> None:
            async with worker_process(it):
                pass

        given_up = asyncio.create_task(started())
        await asyncio.sleep(0.01)
        given_up.cancel()
        with suppress(asyncio.CancelledError):
            await given_up
        await started()
        assert set(multiprocessing.active_children()) <= before
