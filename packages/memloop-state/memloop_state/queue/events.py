"""The events of jobs, in order: the one of number N is entry ``0-(N+1)`` of its job's stream, so it is written once."""

from collections.abc import Sequence

from memloop_state.link import State
from memloop_state.partitions import Partitions
from memloop_state.queue.jobs import JobGone
from memloop_state.queue.records import lane_steps
from memloop_state.values import Streams


class Events:
    """The events of all jobs. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
        self._keys = Partitions(redis)
        self._streams = Streams(redis)
        self._step = lane_steps(redis)

    async def publish(
        self, job_id: str, events: Sequence[str], *, first: int, record: str = "", keep_ms: int = 0, sure: bool = False
    ) -> bool:
        """Append events, of which the first has that number; one whose number is taken stays as it is.

        With a new last one the job's ``record`` changes. Job and events stay for ``keep_ms`` from now on (0: as
        before). Replicas have the events then if they are to be ``sure``. Returns False when a client has asked for the
        job's end. Raises JobGone.
        """
        here = self._keys.of_id(job_id)
        args = [first, keep_ms, record, *events]
        outcome = await self._step("publish", [here.job(job_id), here.events(job_id)], args, acknowledged=sure)
        if outcome == "gone":
            raise JobGone(job_id)
        return outcome != "cancel"

    async def last(self, job_id: str) -> int:
        """Return the number of a job's last event, -1 where it has none."""
        last = await self._streams.last(self._keys.of_id(job_id).events(job_id))
        return int(last.split("-")[1]) - 1 if last else -1
