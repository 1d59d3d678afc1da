"""Builds the rules for queues from the settings."""

from prometheus_client import Counter

from gateway.settings import GatewaySettings, weights_of
from memloop_state.link import State
from memloop_state.room import QueueRules, room_of


def queue_rules(settings: GatewaySettings, state: State, *, refused: Counter) -> QueueRules:
    """Return the rules; ``refused`` counts by queue and reason."""
    room = room_of(state, settings, tenant_share=settings.tenant_queue_share)
    return QueueRules(
        weights_of(settings.tenant_weights), room, lambda queue, reason: refused.labels(queue, reason).inc()
    )
