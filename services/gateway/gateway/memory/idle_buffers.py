"""Settles the buffers that nobody adds to any more: a conversation that went quiet will not bring more context."""

import asyncio
import hashlib
import logging
from datetime import UTC, datetime, timedelta

from gateway.memory.jobs import Jobs
from gateway.redis import key_names as keys
from memloop.clients.store import StoreClient
from memloop.wire.errors import MemloopError
from memloop.wire.memory import Buffer

_LOG = logging.getLogger(__name__)
_LOOKS_PER_AGE = 4
_LONGEST_PAUSE_S = 60.0
_MOST_AT_ONCE = 100


async def flush_for_ever(store: StoreClient, jobs: Jobs, *, age_s: float) -> None:
    """Look for idle buffers again and again; every worker may, for a flush that is queued already is queued once."""
    while True:
        try:
            await flush_idle(store, jobs, age_s=age_s)
        except MemloopError as error:
            _LOG.warning("idle buffers: %s", error.message)
        await asyncio.sleep(min(age_s / _LOOKS_PER_AGE, _LONGEST_PAUSE_S))


async def flush_idle(store: StoreClient, jobs: Jobs, *, age_s: float) -> None:
    """Queue a flush of every buffer that is unchanged for ``age_s``. Raises what store and queue raise."""
    before = datetime.now(UTC) - timedelta(seconds=age_s)
    for buffer in (await store.idle_buffers(before, limit=_MOST_AT_ONCE)).buffers:
        await jobs.enqueue_memory_write(buffer.namespace, (), event_id=_flush_id(buffer))


def _flush_id(buffer: Buffer) -> str:
    """One id for one state of a buffer, whoever finds it."""
    state = buffer.model_dump_json(include={"namespace", "updated_at"})
    return keys.event_id(buffer.namespace.lane(), hashlib.sha256(state.encode()).hexdigest()[:32])
