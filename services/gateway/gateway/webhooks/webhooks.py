"""Bundles the operator's webhook rules and the delivery queue into one value; the route of a tenant's secret.

Secrets and signatures of webhooks (Standard Webhooks 1.0, symmetric signatures).

The operator configures one secret; each tenant's secret derives from it, so no tenant can sign for another.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Self, TypeAlias

from fastapi import APIRouter
from standardwebhooks import Webhook
from yarl import URL

from gateway.access import ManagedTenant, needs
from gateway.addresses import AddressRefused, AddressRules, Lookup, check_host, system_lookup
from gateway.queue import LaneQueue, QueueRules
from gateway.settings import WEBHOOK_KEY_PREFIX, GatewaySettings, networks_of, secret_of, webhook_keys_of
from memloop.wire.errors import NotSupported, Unprocessable
from memloop.wire.keys import WebhookSecret
from memloop_service import ERRORS, of_app
from memloop_state.link import State

_PURPOSE = b"memloop webhook secret of tenant "


class WebhookSecrets:
    """Every tenant's secrets. The first configured secret is the current one; all of them sign."""

    def __init__(self, configured: Sequence[bytes]) -> None:
        self._configured = tuple(configured)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse the setting: ``whsec_`` and base64, comma-separated. Returns None when empty. Raises ValueError."""
        keys = webhook_keys_of(text)
        return cls(keys) if keys else None

    def of(self, tenant: str) -> str:
        """Return the tenant's current secret, in the form its receiver needs."""
        return WEBHOOK_KEY_PREFIX + base64.b64encode(_derived(self._configured[0], tenant)).decode()

    def signatures(self, tenant: str, *, message_id: str, at: datetime, body: str) -> str:
        """Return the value of ``webhook-signature``. ``at`` is in UTC."""
        signers = [Webhook(_derived(secret, tenant)) for secret in self._configured]
        return " ".join(signer.sign(message_id, at, body) for signer in signers)


def _derived(secret: bytes, tenant: str) -> bytes:
    return hmac.digest(secret, _PURPOSE + tenant.encode(), hashlib.sha256)


_PARAM = "webhook.url"
_LOOKUP_S: Final = 2.0
_UNSET = "Webhooks are disabled: no secret is configured (MEMLOOP_WEBHOOK_SECRET)."


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """The rules for deliveries. ``secrets`` is None where webhooks are disabled."""

    secrets: WebhookSecrets | None
    addresses: AddressRules
    allow_http: bool
    lookup: Lookup = system_lookup

    def signed(self) -> WebhookSecrets:
        """Return the secrets. Raises NotSupported when none is configured."""
        if self.secrets is None:
            raise NotSupported(_UNSET)
        return self.secrets

    async def check_url(self, text: str, *, param: str = _PARAM) -> None:
        """Reject a URL that can never be delivered to, and a host that is, or resolves to, an address off limits.

        A name that does not resolve now is accepted: the receiver may come up later, and each delivery checks the
        address of its own connection. Raises NotSupported, Unprocessable.
        """
        self.signed()
        try:
            url = URL(text)
            host = url.raw_host
        except ValueError as error:
            raise Unprocessable("The webhook URL is invalid.", param=param) from error
        if url.scheme != "https" and not (url.scheme == "http" and self.allow_http):
            raise Unprocessable("A webhook URL must use https.", param=param)
        if not host or url.raw_user is not None or url.raw_password is not None:
            raise Unprocessable("The URL must contain a host and no user name.", param=param)
        try:
            await check_host(host, url.port or 443, rules=self.addresses, lookup=self.lookup, timeout_s=_LOOKUP_S)
        except AddressRefused as error:
            raise Unprocessable("The URL's address is not public.", param=param) from error


WEBHOOKS_QUEUE = "webhooks"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The rules for deliveries and the queue of pending ones."""

    rules: WebhookRules
    queue: LaneQueue


def open_webhooks(settings: GatewaySettings, state: State, rules: QueueRules) -> Webhooks:
    """Build the slice from the settings."""
    delivery = WebhookRules(
        secrets=WebhookSecrets.parse(secret_of(settings.webhook_secret) or ""),
        addresses=AddressRules(networks_of(settings.webhook_allow_networks)),
        allow_http=settings.webhook_allow_http,
    )
    return Webhooks(delivery, LaneQueue(state, WEBHOOKS_QUEUE, rules=rules))


WebhooksDep: TypeAlias = Annotated[Webhooks, of_app("webhooks")]


router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=[needs("admin")], responses=ERRORS)


@router.get("/webhook-secret")
async def read_webhook_secret(webhooks: WebhooksDep, tenant: ManagedTenant) -> WebhookSecret:
    """Return the secret with which a tenant's receiver verifies its webhooks."""
    return WebhookSecret(tenant=tenant, secret=webhooks.rules.signed().of(tenant))
