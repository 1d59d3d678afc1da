"""Secrets and signatures of webhooks (Standard Webhooks 1.0, symmetric signatures).

The operator configures one secret; each tenant's own is derived from it, so no tenant can sign for another.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime
from typing import Self

from standardwebhooks import Webhook

from gateway.settings import WEBHOOK_KEY_PREFIX, webhook_keys_of

_PURPOSE = b"memloop webhook secret of tenant "


class WebhookSecrets:
    """Every tenant's secret. Of several configured ones the first is current; each of them signs."""

    def __init__(self, configured: Sequence[bytes]) -> None:
        self._configured = tuple(configured)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Of the setting: ``whsec_`` and base64, several with commas between. Raises ValueError; None when empty."""
        keys = webhook_keys_of(text)
        return cls(keys) if keys else None

    def of(self, tenant: str) -> str:
        """The tenant's current secret, as its receiver needs it."""
        return WEBHOOK_KEY_PREFIX + base64.b64encode(_derived(self._configured[0], tenant)).decode()

    def signatures(self, tenant: str, *, message_id: str, at: datetime, body: str) -> str:
        """The value of ``webhook-signature``. ``at`` is in UTC."""
        signers = [Webhook(_derived(secret, tenant)) for secret in self._configured]
        return " ".join(signer.sign(message_id, at, body) for signer in signers)


def _derived(secret: bytes, tenant: str) -> bytes:
    return hmac.digest(secret, _PURPOSE + tenant.encode(), hashlib.sha256)
