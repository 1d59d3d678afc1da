"""Spreads items over engines: bounded concurrency on each, and failover of items to the other engines."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from evaluation.ruler.items import Item
from evaluation.ruler.readers import ItemReader, Reading
from evaluation.ruler.records import Record
from memloop.ports import Completion
from memloop.wire.errors import EngineError, InvalidRequest, MemloopError
from trainer.data.bounded_map import first_error

_LONGEST_PAUSE_S = 60.0
_ITEMS_OWN_FAULT = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class Engine:
    """An endpoint's URL and its reader."""

    url: str
    reader: ItemReader


@dataclass(frozen=True, slots=True)
class Effort:
    """Concurrency and retries: ``at_once`` items per engine; an item fails after ``attempts`` on each engine.

    After a failure the engine's slot pauses for ``pause_s``, twice as long after each further one, at most a minute.
    """

    at_once: int = 8
    attempts: int = 3
    pause_s: float = 1.0


@dataclass(slots=True)
class Job:
    """One item to read with one seed; its paid replies and failures so far."""

    item: Item
    seed: int
    failures: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    paid: "PaidReplies" = field(default_factory=lambda: PaidReplies())


class PaidReplies:
    """Checkpoints with the lifetime of the job: the next engine resumes from the previous engine's replies."""

    def __init__(self) -> None:
        self._replies: dict[str, Completion] = {}

    async def load(self, key: str) -> Completion | None:
        """See ``Checkpoints``."""
        return self._replies.get(key)

    async def save(self, key: str, completion: Completion) -> None:
        """See ``Checkpoints``."""
        self._replies[key] = completion


DEFAULT_EFFORT = Effort()


async def read_all(
    jobs: Iterator[Job], engines: Sequence[Engine], *, effort: Effort, keep: Callable[[Record], None]
) -> None:
    """Read all jobs, drawn as slots become free, and pass each record to ``keep``."""
    await _Fleet(jobs, engines, effort, keep).run()


class _Fleet:
    def __init__(
        self, jobs: Iterator[Job], engines: Sequence[Engine], effort: Effort, keep: Callable[[Record], None]
    ) -> None:
        self._jobs = jobs
        self._engines = engines
        self._effort = effort
        self._keep = keep
        self._returned: deque[Job] = deque()
        self._in_flight = 0
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        with first_error():
            async with asyncio.TaskGroup() as places:
                for _ in range(self._effort.at_once):
                    for engine in self._engines:
                        places.create_task(self._work(engine))

    async def _work(self, engine: Engine) -> None:
        """Run one slot of an engine."""
        pause_s = self._effort.pause_s
        while (job := await self._next(engine)) is not None:
            error = await self._read(job, engine)
            if error is None:
                pause_s = self._effort.pause_s
            else:
                await asyncio.sleep(max(pause_s, min(error.retry_after_s or 0.0, _LONGEST_PAUSE_S)))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _next(self, engine: Engine) -> Job | None:
        """Return the engine's next job; None when all are done."""
        async with self._changed:
            while (job := await self._any_for(engine)) is None:
                if not self._in_flight and not self._returned:
                    return None
                await self._changed.wait()
            self._in_flight += 1
            return job

    async def _any_for(self, engine: Engine) -> Job | None:
        for job in self._returned:
            if job.failures[engine.url] == self._fewest_failures(job):
                self._returned.remove(job)
                return job
        return await asyncio.to_thread(next, self._jobs, None)

    def _fewest_failures(self, job: Job) -> int:
        return min(job.failures[engine.url] for engine in self._engines)

    async def _read(self, job: Job, engine: Engine) -> MemloopError | None:
        """Read the job; return the error if the engine caused it."""
        began = time.monotonic()
        try:
            reading = await engine.reader.read(job.item, seed=job.seed, paid=job.paid)
        except MemloopError as error:
            job.seconds += time.monotonic() - began
            await self._failed(job, engine, error)
            return None if _is_the_items_fault(error) else error
        job.seconds += time.monotonic() - began
        await self._ended(_record(job, engine, reading))
        return None

    async def _failed(self, job: Job, engine: Engine, error: MemloopError) -> None:
        job.failures[engine.url] += 1
        if _is_the_items_fault(error) or self._fewest_failures(job) >= self._effort.attempts:
            await self._ended(_failure(job, engine, error))
            return
        async with self._changed:
            self._in_flight -= 1
            self._returned.append(job)
            self._changed.notify_all()

    async def _ended(self, record: Record) -> None:
        self._keep(record)
        async with self._changed:
            self._in_flight -= 1
            self._changed.notify_all()


def _is_the_items_fault(error: MemloopError) -> bool:
    """Return whether every engine would refuse the item: too long a question, an empty document."""
    if isinstance(error, EngineError):
        return error.engine_status in _ITEMS_OWN_FAULT
    return isinstance(error, InvalidRequest)


def _record(job: Job, engine: Engine, reading: Reading) -> Record:
    return Record(
        *job.item.key,
        job.seed,
        job.item.golds,
        engine.url,
        answer=reading.answer,
        raw=reading.raw,
        attempts=job.failures.total() + 1,
        calls=reading.usage.llm_calls,
        input_tokens=reading.usage.input_tokens,
        output_tokens=reading.usage.output_tokens,
        seconds=round(job.seconds, 3),
        kind=job.item.kind,
    )


def _failure(job: Job, engine: Engine, error: MemloopError) -> Record:
    return Record(
        *job.item.key,
        job.seed,
        job.item.golds,
        engine.url,
        error=f"{type(error).__name__}: {error.message}",
        attempts=job.failures.total(),
        seconds=round(job.seconds, 3),
        kind=job.item.kind,
    )
