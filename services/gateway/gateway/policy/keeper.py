"""Redacts what is about to be kept, as the policies of its tenant, agent and user ask."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import Counter as Metric
from redis.asyncio import Redis

from gateway.metrics import Metrics
from gateway.policy.policies import Loaded, Policies
from gateway.redaction import Detector, Redaction, detector_at
from gateway.settings import GatewaySettings
from memloop.wire.memory import Scope


@dataclass(frozen=True, slots=True)
class Redactions:
    """The redaction of each scope of one request."""

    loaded: Loaded
    detector: Detector
    metric: Metric

    def of(self, scope: Scope) -> Redaction:
        """Return a redaction of the scope's kinds, with counts of its own."""
        return Redaction(self.loaded.kinds(scope), self.detector, Counter())

    def counted(self, redaction: Redaction) -> dict[str, int]:
        """Add the redaction's counts to the metric and return them by kind."""
        for kind, number in redaction.counts.items():
            self.metric.labels(kind).inc(number)
        return dict(redaction.counts)


@dataclass(frozen=True, slots=True)
class Keeper:
    """The policies, the detector and the metric of a process."""

    policies: Policies
    detector: Detector
    metric: Metric

    async def redactions(self, tenant: str, scopes: Iterable[Scope]) -> Redactions:
        """Read the policies of the tenant's scopes. Raises Unavailable."""
        return Redactions(await self.policies.load(tenant, scopes), self.detector, self.metric)


def keeper_of(settings: GatewaySettings, redis: Redis, metrics: Metrics) -> Keeper:
    """Build the slice from the settings."""
    policies = Policies(redis, default_kinds=settings.redacted_kinds)
    return Keeper(policies, detector_at(settings.memory_detector), metrics.memory_redacted)
