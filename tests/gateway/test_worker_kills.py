"""``kill -9`` of the worker at random moments of a read: it completes, with the answer of a read that nobody disturbed.

The engine's reply depends on the whole prompt, as a greedy model's does, and every call takes a while. ``make
test-kills`` does all twenty trials; the suite a few.
"""

import asyncio
import hashlib
import random
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.long_read.documents import held
from gateway.long_read.records import ReadJob
from gateway.long_read.run import new_record
from memloop.wire.long_read import Document, LongRead, LongReadRequest
from tests.fakes.job_engine import Body, last_text
from tests.fakes.processes import PATIENCE_S
from tests.gateway.rig import Rig, eventually, rig
from tests.gateway.worker_process import worker_process

MOST_CALL_S = 0.04
CHUNKS = 58

DOCUMENT = "".join(f"The gate of day {number} is kept by guard {number * 7}. " for number in range(6_000))


def greedy(body: Body) -> str:
    """A reply that says of the prompt it answers, all of it."""
    digest = hashlib.sha256(last_text(body).encode()).hexdigest()[:16]
    return rf"\boxed{{{digest}}}" if "boxed" in last_text(body) else f"memory {digest}"


@dataclass(frozen=True)
class Trial:
    """How a read went that was killed: its record, how often each prompt was answered, and how often it was killed."""

    record: LongRead
    calls: Counter[str]
    kills: int

    @property
    def read_twice(self) -> int:
        """Calls beyond one for each prompt."""
        return self.calls.total() - len(self.calls)


async def queued(it: Rig, read_id: str) -> ReadJob:
    """A read of ``CHUNKS`` chunks that no worker has seen."""
    request = LongReadRequest(
        model="m", question="Who?", document=Document(text=DOCUMENT), chunk_tokens=2800, background=True
    )
    job = await held(
        ReadJob(read_id=read_id, tenant="local", model="m", request=request), it.work.reading.files.records
    )
    await it.work.reading.records.enqueue(job, new_record(job))
    return job


async def trial(it: Rig, read_id: str, kill_at_calls: list[int]) -> Trial:
    """Read with a worker that dies when it has made so many calls, each time; the last worker may live."""
    it.engine.calls.clear()
    job = await queued(it, read_id)
    for calls in kill_at_calls:
        async with worker_process(it) as process:
            await eventually(lambda: len(it.engine.calls) >= calls, timeout_s=PATIENCE_S)  # noqa: B023 - awaited here
            await asyncio.sleep(random.uniform(0, MOST_CALL_S))
            await process.signalled(signal.SIGKILL)
    async with worker_process(it) as process:
        reading = it.work.reading
        async for _ in reading.followers.follow(await reading.records.get("local", read_id)):
            pass
        await process.signalled(signal.SIGKILL)
    calls_made = Counter(last_text(body) for body in it.engine.calls)
    return Trial(await it.work.reading.records.get("local", job.read_id), calls_made, len(kill_at_calls))


def same_answer(record: LongRead, undisturbed: LongRead) -> bool:
    """Whether nothing but names and times differs."""
    own = {"id", "created_at", "completed_at"}
    return record.model_dump(exclude=own) == undisturbed.model_dump(exclude=own)


async def trials(redis_url: str, folder: Path, plans: list[list[int]]) -> None:
    """Every plan of kills against one undisturbed read."""
    async with rig(redis_url, greedy, storage_url=folder.as_uri()) as it:
        it.engine.latency_s = MOST_CALL_S
        undisturbed = await trial(it, "lr_undisturbed", [])
        assert undisturbed.record.status == "completed"
        assert undisturbed.record.progress.chunks_total == CHUNKS
        assert undisturbed.read_twice == 0
        for number, plan in enumerate(plans):
            killed = await trial(it, f"lr_{number}", plan)
            assert killed.record.status == "completed"
            assert same_answer(killed.record, undisturbed.record)
            assert killed.calls.keys() == undisturbed.calls.keys()
            assert killed.read_twice <= killed.kills
            print(f"killed {killed.kills}x at calls {plan}: {killed.read_twice} chunk(s) read twice, the same answer")


async def test_a_read_survives_kills_of_its_worker(redis_url: str, tmp_path: Path) -> None:
    moments = sorted(random.sample(range(1, CHUNKS + 1), 2))
    await trials(redis_url, tmp_path, [moments])


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_a_read_survives_a_kill_at_each_of_twenty_random_moments(redis_url: str, tmp_path: Path) -> None:
    moments = [random.randint(1, CHUNKS + 1) for _ in range(20)]
    await trials(redis_url, tmp_path, [[moment] for moment in moments])
