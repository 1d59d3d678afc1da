"""Stores memory policies, named texts of each tenant, resolves them with the file's, and redacts what is kept by them.

From the answer to a change on, no write misses it: each reads the policies, or is made by those that the process has
seen last, on the condition that the state still holds the same when it takes the write (``Policies.seen``).
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from prometheus_client import Counter as Metric
from pydantic import JsonValue

from gateway.metrics import Metrics
from gateway.policy.merging import FiledPolicies, merged, read_policies
from gateway.policy.redaction.finding import NEVER, Detector, Redaction, detector_at, redacted_json
from gateway.policy.redaction.phrases import refusals_of
from gateway.queue import GuardBroken
from gateway.settings import GatewaySettings
from memloop.wire.errors import Conflict, TooLarge
from memloop.wire.fields import clean_name, pieces
from memloop.wire.memory import MAX_TEXT_CHARS, Namespace, Scope, Source
from memloop.wire.memory_events import DecisionRecord
from memloop.wire.policy import EffectivePolicy, KeepPolicy, Kind, MemoryPolicy, kinds_of
from memloop_state.link import State, is_cluster
from memloop_state.steps import Fields, Guard, guard_of

MOST_OF_A_TENANT: Final = 10_000
MOST_BYTES: Final = 8192
_MOST_LEVELS: Final = 4
"""As many as one scope has."""
_MOST_SEEN: Final = 1024
_MOST_SEEN_CHARS: Final = 4096
"""A process keeps the policies of so many scopes, of up to 4,096 characters each."""


class Policies:
    """The policies of all tenants. Methods raise Unavailable: nothing is kept unredacted then."""

    def __init__(self, state: State, *, default_kinds: frozenset[Kind], filed: FiledPolicies) -> None:
        self._fields = Fields(state, "policies", most=MOST_OF_A_TENANT)
        self._default_kinds = default_kinds
        self._filed = filed
        self._general = merged([filed.all], None, default_kinds=default_kinds)
        self._is_cluster = is_cluster(state)
        self._seen: dict[tuple[str, ...], Mapping[str, str]] = {}

    async def load(self, tenant: str, scopes: Iterable[Scope]) -> Mapping[str, str]:
        """Read the policies of the tenant's scopes in one round trip; return them by level."""
        levels = _all_levels(scopes)
        known = await self._fields.get(tenant, levels)
        if not self._is_cluster and len(levels) <= _MOST_LEVELS:
            # Short policies are kept for ``seen``; what has none is taken to have none
            self._seen.pop(place := (tenant, *levels), None)
            if known and sum(map(len, known.values())) <= _MOST_SEEN_CHARS:
                if len(self._seen) >= _MOST_SEEN:
                    del self._seen[next(iter(self._seen))]
                self._seen[place] = known
        return known

    def seen(self, scope: Scope) -> tuple[Mapping[str, str], Guard] | None:
        """Return the scope's policies as they were read last, or none, and the guard of what a script makes by them.

        Returns None in a cluster, where a script that writes has no access to them.
        """
        if self._is_cluster:
            return None
        levels = _all_levels([scope])
        known = self._seen.get((scope.tenant, *levels), {})
        return known, guard_of(self._fields.key(scope.tenant), levels, known)

    def in_force(self, scope: Scope, known: Mapping[str, str]) -> EffectivePolicy:
        """Return the settings in force for the scope, with every field of the redaction set.

        At each level the operator's file comes first, then what was set over the API: ``known``, by level.
        """
        if not known and scope.tenant not in self._filed.tenants:
            return self._general
        stack = [self._filed.all]
        for level in levels_of(scope):
            stack += filter(None, (self._filed.at(scope.tenant, level), policy_at(level, known)))
        return merged(stack, policy_of_app(scope, known), default_kinds=self._default_kinds)

    async def put(self, tenant: str, level: str, policy: KeepPolicy) -> None:
        """Replace the policy of a level. Raises Conflict when the tenant has too many, and TooLarge."""
        raw = policy.model_dump_json(exclude_none=True, exclude_defaults=True)
        if len(raw.encode()) > MOST_BYTES:
            raise TooLarge(f"A memory policy has at most {MOST_BYTES} bytes.", code="policy_too_large")
        if not await self._fields.put(tenant, level, raw):
            raise Conflict(f"A tenant may have {MOST_OF_A_TENANT} memory policies.", code="too_many_policies")

    async def delete(self, tenant: str, *levels: str) -> None:
        """Delete the policies of these levels, as far as they have one."""
        await self._fields.delete(tenant, *levels)

    async def forget(self, namespace: Namespace) -> None:
        """Delete a user's policies, when all of the user is erased and not an agent's or a run's part."""
        if namespace.agent_id is None and namespace.run_id is None:
            await self.delete(namespace.tenant, f"user:{namespace.user_id}", level_of_app(namespace.user_id))


def levels_of(scope: Scope) -> tuple[str, ...]:
    """Return the names of the levels that apply to the scope, the general one first."""
    agent = (f"agent:{scope.agent_id}",) if scope.agent_id is not None else ()
    user = (f"user:{scope.user_id}",) if scope.user_id is not None else ()
    return ("tenant", *agent, *user)


def policy_at(level: str, known: Mapping[str, str]) -> MemoryPolicy | None:
    """Return the policy of a level, as it was set over the API."""
    raw = known.get(level)
    return None if raw is None else MemoryPolicy.model_validate_json(raw)


def policy_of_app(scope: Scope, known: Mapping[str, str]) -> KeepPolicy | None:
    """Return what the application has set for the scope's user."""
    raw = None if scope.user_id is None else known.get(level_of_app(scope.user_id))
    return None if raw is None else KeepPolicy.model_validate_json(raw)


def level_of_app(user_id: str) -> str:
    """Name the level of what an application sets for its user."""
    return f"app:{user_id}"


def _all_levels(scopes: Iterable[Scope]) -> list[str]:
    levels = dict[str, None]()
    for scope in scopes:
        levels |= dict.fromkeys(levels_of(scope))
        if scope.user_id is not None:
            levels[level_of_app(scope.user_id)] = None
    return list(levels)


_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class Redactions:
    """What may be kept of each scope of one request, by the policies that were ``known`` at each level."""

    known: Mapping[str, str]
    keeper: "Keeper"

    def policy(self, scope: Scope) -> EffectivePolicy:
        """Return the settings in force in the scope."""
        return self.keeper.policies.in_force(scope, self.known)

    def of(self, scope: Scope) -> Redaction:
        """Return a redaction of the scope's kinds and phrases, with counts of its own."""
        policy = self.policy(scope)
        kinds = kinds_of(policy.redaction.kinds or ()) if policy.redaction.enabled else frozenset[Kind]()
        return Redaction(kinds, self.keeper.detector, Counter(), refusals_of(policy.never))

    def applied(self, scope: Scope, redacted: Callable[[Redaction], _Kept], unchanged: _Kept) -> _Kept:
        """Return what ``redacted`` makes by the scope's redaction, counted; ``unchanged`` where there is none."""
        redaction = self.of(scope)
        if not redaction.is_active:
            return unchanged
        try:
            return redacted(redaction)
        finally:
            self.counted(redaction)

    def counted(self, redaction: Redaction) -> dict[str, int]:
        """Add the redaction's counts to the metrics and return them by kind."""
        for kind, number in redaction.counts.items():
            (self.keeper.not_kept if kind == NEVER else self.keeper.metric.labels(kind)).inc(number)
        return dict(redaction.counts)


@dataclass(frozen=True, slots=True)
class Keeper:
    """The policies, the detector and the metric of a process."""

    policies: Policies
    detector: Detector
    metric: Metric
    not_kept: Metric

    async def redactions(self, tenant: str, scopes: Iterable[Scope]) -> Redactions:
        """Read the policies of the tenant's scopes. Raises Unavailable."""
        return Redactions(await self.policies.load(tenant, scopes), self)

    def seen(self, scope: Scope) -> tuple[Redactions, Guard] | None:
        """Return the redactions by ``Policies.seen``, for a write that is refused when the policies have changed."""
        found = self.policies.seen(scope)
        return None if found is None else (Redactions(found[0], self), found[1])

    async def guarded(self, scope: Scope, work: Callable[[Redactions, Guard | None], Awaitable[_Kept]]) -> _Kept:
        """Do a write by the policies that were seen last; by the present ones where its guard finds these changed."""
        if (seen := self.seen(scope)) is not None:
            with suppress(GuardBroken):
                return await work(*seen)
        return await work(await self.redactions(scope.tenant, [scope]), None)


def keeper_of(settings: GatewaySettings, state: State, metrics: Metrics) -> Keeper:
    """Build the slice from the settings."""
    filed = read_policies(settings.memory_policy_file)
    policies = Policies(state, default_kinds=settings.redacted_kinds, filed=filed)
    return Keeper(policies, detector_at(settings.memory_detector), metrics.memory_redacted, metrics.memory_not_kept)


_WORDS: Final = ("reason", "reasoning", "query", "note", "reply")
"""The fields of a decision's record that hold the model's words."""


def redacted_turns(turns: Sequence[Source], redact: Redaction) -> tuple[Source, ...]:
    """Return the turns redacted; one that marks make longer than a turn may be becomes several."""
    parts: list[Source] = []
    for turn in turns:
        name = clean_name(redact(turn.name)) if turn.name else None
        renamed = turn if name == turn.name else turn.model_copy(update={"name": name})
        split = [*pieces(redact(turn.content), name=name, most_chars=MAX_TEXT_CHARS)] or [""]
        parts += (
            renamed if piece == turn.content else renamed.model_copy(update={"content": piece}) for piece in split
        )
    return tuple(parts)


def redacted_metadata(metadata: dict[str, JsonValue], redact: Redaction) -> dict[str, JsonValue]:
    """Return the metadata with every text in it redacted; the names of its fields stay."""
    return cast("dict[str, JsonValue]", redacted_json(metadata, redact))


def chars_of(turns: Iterable[Source], metadata: Mapping[str, JsonValue]) -> int:
    """Return how many characters there are to redact in turns and metadata."""
    return sum(len(turn.said()) for turn in turns) + _chars_in(metadata)


def _chars_in(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_chars_in, cast("dict[str, object]", value).values()))
    return sum(map(_chars_in, cast("list[object]", value))) if isinstance(value, list) else 0


def redacted_records(records: Iterable[DecisionRecord], redact: Redaction) -> tuple[DecisionRecord, ...]:
    """Return the records with the model's own words redacted."""
    return tuple(
        record.model_copy(update={name: redact(text) for name in _WORDS if (text := getattr(record, name))})
        for record in records
    )
