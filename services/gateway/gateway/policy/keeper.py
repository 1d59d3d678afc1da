"""Redacts what is about to be kept, as the policies of its tenant, agent and user ask."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import Counter as Metric

from gateway.metrics import Metrics
from gateway.policy.filed import read_policies
from gateway.policy.policies import Loaded, Policies
from gateway.policy.redaction import NEVER, Detector, Redaction, detector_at, refusals_of
from gateway.settings import GatewaySettings
from memloop.wire.memory import Scope
from memloop.wire.policy import EffectivePolicy
from memloop.wire.redaction import Kind, kinds_of
from memloop_state.link import State
from memloop_state.values import Guard

_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class Redactions:
    """What may be kept of each scope of one request."""

    loaded: Loaded
    detector: Detector
    metric: Metric
    not_kept: Metric

    def policy(self, scope: Scope) -> EffectivePolicy:
        """Return the settings in force in the scope."""
        return self.loaded.of(scope)

    def of(self, scope: Scope) -> Redaction:
        """Return a redaction of the scope's kinds and phrases, with counts of its own."""
        policy = self.policy(scope)
        kinds = kinds_of(policy.redaction.kinds or ()) if policy.redaction.enabled else frozenset[Kind]()
        return Redaction(kinds, self.detector, Counter(), refusals_of(policy.never))

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
            (self.not_kept if kind == NEVER else self.metric.labels(kind)).inc(number)
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
        return self._by(await self.policies.load(tenant, scopes))

    def seen(self, scope: Scope) -> tuple[Redactions, Guard] | None:
        """Return the redactions by ``Policies.seen``, for a write that is refused when the policies have changed."""
        found = self.policies.seen(scope)
        return None if found is None else (self._by(found[0]), found[1])

    def _by(self, loaded: Loaded) -> Redactions:
        return Redactions(loaded, self.detector, self.metric, self.not_kept)


def keeper_of(settings: GatewaySettings, state: State, metrics: Metrics) -> Keeper:
    """Build the slice from the settings."""
    filed = read_policies(settings.memory_policy_file)
    policies = Policies(state, default_kinds=settings.redacted_kinds, filed=filed)
    return Keeper(policies, detector_at(settings.memory_detector), metrics.memory_redacted, metrics.memory_not_kept)
