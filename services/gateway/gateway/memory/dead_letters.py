"""Lists, requeues and drops dead letters: jobs that failed on their last attempt.

Run ``python -m gateway.memory.dead_letters list | requeue ID... | requeue --all | drop ID...`` with the worker's
settings. A requeued write gets a new set of attempts and keeps its decisions and stored items. A background read can
only be dropped: its client has the document and has received the error.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence

from gateway.memory.jobs import MEMORY_QUEUE, dead_write, requeue
from gateway.queue import DeadLetter, LaneQueue, state_of
from gateway.settings import WorkerSettings
from memloop.wire.errors import MemloopError
from memloop_state.link import State

_PAGE = 100


class DeadLetters:
    """Reads and changes the dead letters of all queues. Methods raise Unavailable."""

    def __init__(self, state: State) -> None:
        self._queue = LaneQueue(state, MEMORY_QUEUE)

    async def all(self) -> AsyncIterator[DeadLetter]:
        """Yield all dead letters, oldest first within each partition."""
        for partition in self._queue.keys.partitions:
            after = ""
            while page := await self._queue.letters.page(partition, after=after, count=_PAGE):
                for letter in page:
                    yield letter
                after = page[-1].entry

    async def requeue(self, job_id: str) -> bool:
        """Requeue the write. Returns False if it is not a dead letter or its payload is gone."""
        return await requeue(self._queue, job_id)

    async def drop(self, job_id: str) -> bool:
        """Delete the dead letter, and a write's job data; stored memories stay. Returns False if there is none."""
        letters = [letter async for letter in self.all() if letter.job_id == job_id]
        job = await dead_write(self._queue, job_id)
        if job is not None:
            await self._queue.forget(job.namespace.lane(), job_id)
        else:
            for letter in letters:
                await self._queue.letters.drop(letter)
        return bool(letters)


async def run(command: str, ids: Sequence[str], letters: DeadLetters) -> int:
    """Run the command and print its results. Returns the exit status: 1 when an id was not a dead letter."""
    if command == "list":
        async for letter in letters.all():
            print(letter.job_id, letter.error, sep="\t")
        return 0
    act, word = (letters.requeue, "requeued") if command == "requeue" else (letters.drop, "dropped")
    done = [await act(job_id) for job_id in ids]
    for job_id, success in zip(ids, done, strict=True):
        print(f"{job_id}: {word if success else 'not a dead letter, or cannot be requeued'}")
    return 0 if all(done) else 1


async def _main(arguments: argparse.Namespace) -> int:
    settings = WorkerSettings.read()
    async with state_of(settings) as state:
        letters = DeadLetters(state)
        everything = getattr(arguments, "all", False)
        ids = [letter.job_id async for letter in letters.all()] if everything else getattr(arguments, "id", [])
        return await run(arguments.command, ids, letters)


def main() -> None:
    """Run the command line. Exits with 1 when an id was not a dead letter or the state is unreachable."""
    try:
        parser = argparse.ArgumentParser(
            prog="python -m gateway.memory.dead_letters", description="List, requeue or drop failed jobs."
        )
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("list", help="print id and error of each, oldest first")
        requeue = commands.add_parser("requeue", help="run memory writes again")
        chosen = requeue.add_mutually_exclusive_group(required=True)
        chosen.add_argument("id", nargs="*", default=[])
        chosen.add_argument("--all", action="store_true")
        commands.add_parser("drop", help="delete dead letters").add_argument("id", nargs="+")
        sys.exit(asyncio.run(_main(parser.parse_args())))
    except MemloopError as error:
        sys.exit(error.message)


if __name__ == "__main__":
    main()
