"""Takes a namespace out of every place: queue, events, dead letters, traces, store."""

import asyncio
import time

from gateway.memory.jobs import Jobs
from gateway.queue.lanes import LaneQueue
from gateway.traces.records import TraceRecords
from memloop.clients import StoreClient
from memloop.wire.memory import Erased, Namespace

_LEASE_MS = 120_000
_WAIT_S = 5.0
_POLL_S = 0.05


async def erase(namespace: Namespace, *, jobs: Jobs, store: StoreClient, traces: TraceRecords) -> Erased:
    """Delete everything of the namespace; how much of each. Raises what Redis and the store raise.

    A write that runs loses its job, and with that its lease, within a second. Traces and store are asked only once the
    lane is ours, so that nothing is written after it. A lane whose holder is dead is taken from it.
    """
    forgotten = await jobs.events.forget(namespace)
    lane = namespace.lane()
    token = await _lane(jobs.memory, lane)
    try:
        late = await jobs.events.forget(namespace)  # of a write that ended while the lane was waited for
        await traces.forget(namespace)
        erased = await store.erase(namespace)
    finally:
        await jobs.memory.leave_lane(lane, token)
    return erased.model_copy(
        update={"queue": forgotten.waiting + late.waiting, "events": forgotten.events + late.events}
    )


async def _lane(queue: LaneQueue, lane: str) -> int:
    deadline = time.monotonic() + _WAIT_S
    while True:
        late = time.monotonic() >= deadline
        token = await queue.take_lane(lane, lease_ms=_LEASE_MS, force=late)
        if token is not None:
            return token
        await asyncio.sleep(_POLL_S)
