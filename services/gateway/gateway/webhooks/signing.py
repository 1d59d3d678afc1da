"""Secrets and signatures of webhooks (Standard Webhooks 1.0, symmetric signatures).

The operator configures one secret; each tenant's own is derived from it, so no tenant can sign for another.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime
from typing import Self

from standardwebhooks import Webhook

PREFIX = "whsec_"
_MIN_BYTES = 24
_MAX_BYTES = 64
_PURPOSE = b"memloop webhook secret of tenant "


class WebhookSecrets:
    """Every tenant's secret. Of several configured ones the first is current; each of them signs."""

    def __init__(self, configured: Sequence[bytes]) -> None:
        self._configured = tuple(configured)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Of the setting: ``whsec_`` and base64, several with commas between. Raises ValueError; None when empty."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return cls([_decoded(part) for part in parts]) if parts else None

    def of(self, tenant: str) -> str:
        """The tenant's current secret, as its receiver needs it."""
        return PREFIX + base64.b64encode(_derived(self._configured[0], tenant)).decode()

    def signatures(self, tenant: str, *, message_id: str, at: datetime, body: str) -> str:
        """The value of ``webhook-signature``. ``at`` is in UTC."""
        signers = [Webhook(_derived(secret, tenant)) for secret in self._configured]
        return " ".join(signer.sign(message_id, at, body) for signer in signers)


def _derived(secret: bytes, tenant: str) -> bytes:
    return hmac.digest(secret, _PURPOSE + tenant.encode(), hashlib.sha256)


def _decoded(part: str) -> bytes:
    try:
        secret = base64.b64decode(part.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        secret = b""
    if not part.startswith(PREFIX) or not _MIN_BYTES <= len(secret) <= _MAX_BYTES:
        raise ValueError(f"a webhook secret is {PREFIX} and the base64 of {_MIN_BYTES} to {_MAX_BYTES} bytes")
    return secret
