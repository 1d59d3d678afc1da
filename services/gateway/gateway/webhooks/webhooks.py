"""Bundles the operator's webhook rules and the delivery queue into one value."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request
from redis.asyncio import Redis

from gateway.addresses import AddressRules
from gateway.queue import LaneQueue, QueueRules
from gateway.settings import GatewaySettings, networks_of, secret_of
from gateway.webhooks.rules import WebhookRules
from gateway.webhooks.signing import WebhookSecrets

WEBHOOKS_QUEUE = "webhooks"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The rules for deliveries and the queue of pending ones."""

    rules: WebhookRules
    queue: LaneQueue


def open_webhooks(settings: GatewaySettings, redis: Redis, rules: QueueRules) -> Webhooks:
    """Build the slice from the settings."""
    delivery = WebhookRules(
        secrets=WebhookSecrets.parse(secret_of(settings.webhook_secret) or ""),
        addresses=AddressRules(networks_of(settings.webhook_allow_networks)),
        allow_http=settings.webhook_allow_http,
    )
    return Webhooks(delivery, LaneQueue(redis, WEBHOOKS_QUEUE, rules=rules))


async def webhooks_of(request: Request) -> Webhooks:
    """Return the slice from the application's state."""
    return cast(Webhooks, request.app.state.webhooks)


WebhooksDep: TypeAlias = Annotated[Webhooks, Depends(webhooks_of)]
