"""The operator's rules for webhooks."""

from dataclasses import dataclass

from yarl import URL

from gateway.addresses import AddressRefused, AddressRules
from gateway.webhooks.signing import WebhookSecrets
from memloop.wire.errors import NotSupported, Unprocessable

_PARAM = "webhook.url"
_UNSET = "Webhooks are disabled: no secret is configured (MEMLOOP_WEBHOOK_SECRET)."


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """The rules for deliveries. ``secrets`` is None where webhooks are disabled."""

    secrets: WebhookSecrets | None
    addresses: AddressRules
    allow_http: bool

    def signed(self) -> WebhookSecrets:
        """Return the secrets. Raises NotSupported when none is configured."""
        if self.secrets is None:
            raise NotSupported(_UNSET)
        return self.secrets

    def check_url(self, text: str, *, param: str = _PARAM) -> None:
        """Reject a URL that can never be delivered to. Host names are resolved on delivery.

        Raises NotSupported, Unprocessable.
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
            self.addresses.check(host)
        except AddressRefused as error:
            raise Unprocessable("The URL's address is not public.", param=param) from error
        except ValueError:
            return  # a name
