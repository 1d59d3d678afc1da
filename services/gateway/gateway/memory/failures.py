"""What a memory write that failed leaves behind: for its user's next chat, for readiness, in the log.

Two small records, each with an end of its own, none with a user's text: the last failed write of a user, and
the last refusal of the engine. The next write of that user that succeeds deletes both. A record that cannot be kept or
read never fails a write or a chat. ``pending`` reads the first beside the user's queued writes.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from gateway.memory.jobs import MemoryJob
from gateway.metrics import Metrics
from memloop.wire.base import Wire
from memloop.wire.errors import DependencyError, EngineError, MemloopError
from memloop.wire.memory import Namespace
from memloop_state.link import State
from memloop_state.values import Values

_LOG = logging.getLogger(__name__)
_KEEP_S: Final = 24 * 3600
_CODE_CHARS: Final = 64
_PASSING: Final = frozenset({408, 425, 429})
_WAYS_OUT: Final = {
    401: "set MEMLOOP_ENGINE_API_KEY",
    403: "set MEMLOOP_ENGINE_API_KEY to a key that may use the model",
    404: "set MEMLOOP_ENGINE_URL and MEMLOOP_MODEL",
}
_SEND_OTHERWISE: Final = "set MEMLOOP_ENGINE_DIALECT, or a writer model that calls tools"
_GUIDE: Final = "docs/how-to/endpoints.md"


class FailedWrite(Wire):
    """The last failed write of a user."""

    event_id: str
    code: str
    at: datetime

    def summary(self) -> str:
        """The sentence for the user's next chat."""
        when = self.at.strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"An earlier turn is not remembered: its memory write {self.event_id} failed at {when} ({self.code})."


class _Refusal(Wire):
    """The engine's last refusal of a write."""

    status: int
    code: str

    def summary(self) -> str:
        """The sentence for an operator, with the way out."""
        way_out = _WAYS_OUT.get(self.status, _SEND_OTHERWISE)
        return f"the engine refuses memory writes ({self.status} {self.code}): {way_out}; see {_GUIDE}"


def failed_writes(state: State) -> Values:
    """Return the last failed write of each user, by lane."""
    return Values(state, "failed-write", keep_s=_KEEP_S)


class WriteFailures:
    """The records of all users."""

    def __init__(self, state: State) -> None:
        self._failed = failed_writes(state)
        self._refusals = Values(state, "writes-refused", keep_s=_KEEP_S)

    @asynccontextmanager
    async def watching(self, job: MemoryJob, metrics: Metrics) -> AsyncGenerator[None]:
        """Keep what becomes of one attempt of a write: the engine's refusal at once, a success by deleting both."""
        try:
            yield
        except EngineError as error:
            if is_refusal(error):
                metrics.memory_writes_refused.labels(error.engine_status).inc()
                refusal = _Refusal(status=error.engine_status, code=_code(error))
                record = refusal.model_dump_json()
                with suppress(DependencyError):
                    if await self._refusals.put("", record) != record:
                        _LOG.error("%s", refusal.summary())
                await self.failed(job, error)
            raise
        if job.infer:
            with suppress(DependencyError):
                await asyncio.gather(
                    self._failed.delete(job.namespace.lane(), quick=True), self._refusals.delete("", quick=True)
                )

    async def failed(self, job: MemoryJob, error: MemloopError) -> None:
        """Keep the write as its user's last failed one."""
        record = FailedWrite(event_id=job.event_id, code=_code(error), at=datetime.now(UTC))
        with suppress(DependencyError):
            await self._failed.put(job.namespace.lane(), record.model_dump_json())

    async def warning(self) -> str | None:
        """The engine's last refusal with the way out, for readiness."""
        found = await self._refusals.get("")
        return _Refusal.model_validate_json(found).summary() if found is not None else None

    async def forget(self, namespace: Namespace) -> None:
        """Delete the user's record; replicas then have all earlier deletions of the user's jobs. Raises Unavailable."""
        await self._failed.delete(namespace.lane())


def _code(error: MemloopError) -> str:
    return (error.code or "failed")[:_CODE_CHARS]


def is_refusal(error: EngineError) -> bool:
    """Whether the engine refused the request, and will refuse the next one like it."""
    return 400 <= error.engine_status < 500 and error.engine_status not in _PASSING
