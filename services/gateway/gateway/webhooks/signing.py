"""Secrets and signatures of webhooks (Standard Webhooks 1.0, symmetric signatures).

The operator configures one secret; each tenant's secret derives from it, so no tenant can sign for another.
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
