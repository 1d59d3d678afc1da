"""Bundles the operator's webhook rules and the delivery queue into one value."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias, cast

from fastapi import Depends, Request
from yarl import URL

from gateway.addresses import AddressRefused, AddressRules, Lookup, check_host, system_lookup
from gateway.queue import LaneQueue, QueueRules
from gateway.settings import GatewaySettings, networks_of, secret_of
from gateway.webhooks.signing import WebhookSecrets
from memloop.wire.errors import NotSupported, Unprocessable
from memloop_state.link import State

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


async def webhooks_of(request: Request) -> Webhooks:
    """Return the slice from the application's state."""
    return cast(Webhooks, request.app.state.webhooks)


WebhooksDep: TypeAlias = Annotated[Webhooks, Depends(webhooks_of)]
