"""Decides whether a loop is recorded, and stores the redacted recording. It never makes a job fail."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, TypeAlias, cast

import orjson
from fastapi import Depends, Request
from redis.asyncio import Redis

from gateway.metrics import Metrics
from gateway.settings import GatewaySettings
from gateway.traces.capture import Recording
from gateway.traces.records import TraceRecords
from gateway.traces.redaction import NewRedactor, redacted, redactor_at
from memloop.loops.decisions import DecisionResult, InvalidOutput
from memloop.loops.results import ReadResult
from memloop.ports import total
from memloop.wire.errors import DependencyError
from memloop.wire.memory import Source
from memloop.wire.traces import Trace, TracedAnswer
from memloop_state.owners import Owner

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TraceKeeper:
    """Stores traces. ``max_chars`` bounds one trace; ``count`` counts the outcome of each.

    An outcome is ``kept``, ``too_long``, ``off`` (switched off meanwhile), ``erased`` (an owner was, meanwhile) or
    ``lost`` (Redis was unreachable).
    """

    records: TraceRecords
    new_redactor: NewRedactor
    max_chars: int
    count: Callable[[str], None]

    async def new_recording(self, tenant: str) -> Recording | None:
        """Return a recorder if the tenant keeps traces."""
        try:
            return Recording(self.max_chars) if await self.records.enabled(tenant) else None
        except DependencyError:
            return None

    async def keep_write(
        self,
        recording: Recording,
        result: DecisionResult,
        turns: Sequence[Source],
        *,
        trace_id: str,
        of: Owner,
        served: "Served",
    ) -> None:
        """Store a decision, unless it is invalid or its user was erased since the write began."""
        if isinstance(result.decision, InvalidOutput):
            return
        trace = Trace(
            id=trace_id,
            kind="memory_write",
            at=datetime.now(UTC),
            model=served.model,
            profile=served.profile,
            calls=tuple(recording.calls),
            tools=recording.tools,
            usage=result.usage,
            turns=tuple(turns),
            found=tuple(recording.found.values()),
            action=result.decision.action,
            memories=tuple(draft.value for draft in result.drafts),
            decisions=result.records,
        )
        await self._keep(recording, trace, tenant=of.namespace.tenant, owners=(of,))

    async def keep_read(
        self,
        recording: Recording,
        results: Sequence[tuple[str, ReadResult]],
        *,
        trace_id: str,
        tenant: str,
        owners: Sequence[Owner],
        strategy: str,
        served: "Served",
    ) -> None:
        """Store a completed read: its questions and results."""
        trace = Trace(
            id=trace_id,
            kind="long_read",
            at=datetime.now(UTC),
            model=served.model,
            profile=served.profile,
            calls=tuple(recording.calls),
            usage=total(result.usage for _, result in results),
            strategy=strategy,
            document=recording.document(),
            answers=tuple(
                TracedAnswer(question=question, answer=result.answer, boxed=result.boxed)
                for question, result in results
            ),
        )
        await self._keep(recording, trace, tenant=tenant, owners=owners)

    async def _keep(self, recording: Recording, trace: Trace, *, tenant: str, owners: Sequence[Owner]) -> None:
        if recording.too_long:
            self.count("too_long")
            return
        clean = redacted(trace.model_dump(mode="json", exclude_defaults=True), self.new_redactor())
        kept = self.records.keep(trace.id, orjson.dumps(clean).decode(), tenant=tenant, owners=owners)
        self.count(await _outcome(kept))


@dataclass(frozen=True, slots=True)
class Served:
    """The model that a loop ran on and the profile of its prompts."""

    model: str
    profile: str


def open_traces(settings: GatewaySettings, redis: Redis, metrics: Metrics) -> TraceKeeper:
    """Build the slice from the settings."""
    return TraceKeeper(
        records=TraceRecords(redis, keep_s=settings.trace_keep_s, most=settings.tenant_traces),
        new_redactor=redactor_at(settings.trace_redactor),
        max_chars=settings.max_trace_chars,
        count=lambda outcome: metrics.traces.labels(outcome).inc(),
    )


async def traces_of(request: Request) -> TraceKeeper:
    """Return the slice from the application's state."""
    return cast(TraceKeeper, request.app.state.traces)


TracesDep: TypeAlias = Annotated[TraceKeeper, Depends(traces_of)]


async def _outcome(keeping: Awaitable[str]) -> str:
    try:
        return await keeping
    except DependencyError as error:
        _LOG.warning("a trace was lost: %s", error.message)
        return "lost"
