"""Decides whether a loop is recorded, and stores the redacted recording. It never makes a job fail.

A trace is deleted by age, by the tenant's cap (oldest first), with its read, when an owner is erased, and when the
tenant's switch is turned off.

Redacts personal identifiers and credentials from texts by rules, without a model.

A value gets the same mark throughout one trace (``[email 1]``), so that a question, its memory and its answer still
match. Names and prose remain. Where that is not enough, configure another redactor
(``MEMLOOP_TRACE_REDACTOR=package.module:function``).
"""

import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, TypeAlias, cast

import orjson

from gateway.metrics import Metrics
from gateway.policy import Found, find_by_rules, redacted_json, replaced
from gateway.settings import GatewaySettings, function_at
from gateway.traces.capture import Recording
from memloop.loops.results import DecisionResult, InvalidOutput, ReadResult
from memloop.wire.errors import DependencyError
from memloop.wire.memory import Source, Usage
from memloop.wire.policy import ALL_KINDS, Kind
from memloop.wire.traces import Trace, TracedAnswer, TraceSettings
from memloop_service import of_app
from memloop_state.link import State
from memloop_state.owners import Owner
from memloop_state.table import Table

Redact: TypeAlias = Callable[[str], str]
"""Returns a text without sensitive values."""
NewRedactor: TypeAlias = Callable[[], Redact]
"""Creates the redactor of one trace."""

_NAMES: Final[dict[Kind, str]] = {"private_key": "private key", "ip": "address", "national_id": "id number"}
# fmt: off
_NO_TEXT: Final = frozenset((
    "id", "kind", "at", "model", "profile", "strategy", "tools", "action", "role", "type",
    "valid_from", "timestamp", "message_id", "tool_call_id", "finish_reason", "parse_path",
))
"""Ids, times and other fields that users did not write."""
# fmt: on


class RuleRedactor:
    """Redacts the texts of one trace; equal values get equal marks."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def __call__(self, text: str) -> str:
        """Return the text with marks in place of the values that the rules find."""

        def mark(found: Found) -> str:
            kind, value = _NAMES.get(found.kind, found.kind), text[found.start : found.end]
            number = self._numbers[kind].setdefault(value.casefold(), len(self._numbers[kind]) + 1)
            return f"[{kind} {number}]"

        return replaced(text, find_by_rules(text, ALL_KINDS), mark)


def redactor_at(name: str) -> NewRedactor:
    """Load the factory named ``package.module:function``, or the built-in one when empty. Raises ValueError."""
    if not name:
        return RuleRedactor
    return cast(NewRedactor, function_at(name, setting="MEMLOOP_TRACE_REDACTOR"))


_LOG = logging.getLogger(__name__)
KIND: Final = "traces"
"""What traces are among the records of their owners."""


class TraceRecords:
    """Every tenant's traces. Methods raise Unavailable."""

    def __init__(self, state: State, *, keep_s: float, most: int) -> None:
        self._keep_s = keep_s
        self._table = Table(state, "trace", kind=KIND, keep_s=keep_s, most=most, oldest_out=True, switches=True)

    async def enabled(self, tenant: str) -> bool:
        """Return whether the tenant's traces are kept."""
        return await self._table.switches.get(tenant) is not None

    async def switch(self, tenant: str, *, on: bool) -> int:
        """Keep the tenant's traces from now on, or stop and delete the stored ones. Returns the number deleted."""
        await self._table.switch(tenant, on=on)  # first, so that no more are added
        ids = [] if on else await self._table.ids(tenant)
        return sum([await self.forget_one(tenant, trace_id) for trace_id in ids])

    async def settings(self, tenant: str) -> TraceSettings:
        """Return the switch's state and the number of stored traces."""
        kept = len(await self._table.ids(tenant))
        return TraceSettings(tenant=tenant, enabled=await self.enabled(tenant), kept=kept, keep_s=int(self._keep_s))

    async def keep(self, trace_id: str, trace: str, *, tenant: str, owners: Sequence[Owner]) -> str:
        """Store a trace (JSON), replacing one with its id. Returns ``kept``, ``off`` or ``erased``."""
        return await self._table.put(tenant, trace_id, {"trace": trace}, owners=owners)

    async def all(self, tenant: str) -> AsyncGenerator[str]:
        """Yield the tenant's traces as JSON, oldest first."""
        for trace_id in await self._table.ids(tenant):
            if (found := await self._table.get(tenant, trace_id)) is not None:
                yield found["trace"]

    async def forget_one(self, tenant: str, trace_id: str) -> int:
        """Delete one trace. Returns the number deleted, 0 or 1."""
        return int(await self._table.delete(tenant, trace_id) == "deleted")


@dataclass(frozen=True, slots=True)
class TraceKeeper:
    """Stores traces. ``max_chars`` bounds one trace; ``count`` counts the outcome of each.

    An outcome is ``kept``, ``too_long``, ``off`` (switched off meanwhile), ``erased`` (an owner was, meanwhile) or
    ``lost`` (the state was unreachable).
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
            memories=tuple(draft.value for draft in result.decision.drafts),
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
            usage=sum((result.usage for _, result in results), start=Usage()),
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
        written = trace.model_dump(mode="json", exclude_defaults=True)
        clean = redacted_json(written, self.new_redactor(), skip=_NO_TEXT)
        try:
            self.count(await self.records.keep(trace.id, orjson.dumps(clean).decode(), tenant=tenant, owners=owners))
        except DependencyError as error:
            _LOG.warning("a trace was lost: %s", error.message)
            self.count("lost")


@dataclass(frozen=True, slots=True)
class Served:
    """The model that a loop ran on and the profile of its prompts."""

    model: str
    profile: str


def open_traces(settings: GatewaySettings, state: State, metrics: Metrics) -> TraceKeeper:
    """Build the slice from the settings."""
    return TraceKeeper(
        records=TraceRecords(state, keep_s=settings.trace_keep_s, most=settings.tenant_traces),
        new_redactor=redactor_at(settings.trace_redactor),
        max_chars=settings.max_trace_chars,
        count=lambda outcome: metrics.traces.labels(outcome).inc(),
    )


TracesDep: TypeAlias = Annotated[TraceKeeper, of_app("traces")]
