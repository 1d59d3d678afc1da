"""Stores API keys created at run time, by hash, with a change log that all processes follow.

One step applies a change to the record, the tenant's index, the change log and the audit log atomically.
"""

import hashlib
import secrets
import time
from collections.abc import Sequence
from typing import Final, cast

from memloop.wire.base import Wire
from memloop.wire.errors import Conflict, NotFound
from memloop.wire.keys import ApiKey, AuditEntry, Scope
from memloop_state.credentials import Credentials, audit_stream
from memloop_state.link import State

KEYS_OF_A_TENANT: Final = 1000
_SECRET_BYTES: Final = 32
_PREFIX_CHARS: Final = 10


class KeyRecord(Wire):
    """The stored form of an API key. Digests are SHA-256 in hex."""

    id: str
    tenant: str
    name: str
    prefix: str
    scopes: tuple[Scope, ...]
    digest: str
    created_at: int
    expires_at: int | None = None
    old_digest: str | None = None
    old_until: int | None = None

    def shown(self, *, last_used_at: int | None = None) -> ApiKey:
        """Return the key without its secret's digest, for API responses."""
        overlaps = self.old_until is not None and self.old_until > time.time()
        return ApiKey(
            **self.model_dump(include={"id", "tenant", "name", "prefix", "scopes", "created_at", "expires_at"}),
            last_used_at=last_used_at,
            overlap_until=self.old_until if overlaps else None,
        )

    def rotated(self, secret: str, *, overlap_s: int) -> "KeyRecord":
        """Return the key with a new secret; the present one stays valid for ``overlap_s`` seconds."""
        old_digest, old_until = (self.digest, int(time.time()) + overlap_s) if overlap_s else (None, None)
        new = {"prefix": prefix_of(secret), "digest": digest_of(secret)}
        return self.model_copy(update={**new, "old_digest": old_digest, "old_until": old_until})


def new_key_id() -> str:
    """Return a new key id; ids sort by creation time."""
    return f"key_{int(time.time() * 1000):012x}{secrets.token_hex(6)}"


def new_secret() -> str:
    """Return a secret of 256 random bits."""
    return f"ml_{secrets.token_urlsafe(_SECRET_BYTES)}"


def prefix_of(secret: str) -> str:
    """Return the displayable prefix of a secret, which reveals 42 of its bits."""
    return secret[:_PREFIX_CHARS]


def digest_of(secret: str) -> str:
    """Return the digest that is stored instead of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


class KeyRecords:
    """Reads and changes key records. Methods raise Unavailable."""

    def __init__(self, state: State) -> None:
        self._credentials = Credentials(state, most=KEYS_OF_A_TENANT)
        self.newest_change = self._credentials.newest_change
        self.changes = self._credentials.changes
        self.note_uses = self._credentials.note_uses

    async def get(self, key_id: str) -> KeyRecord:
        """Return one key. Raises NotFound."""
        (found,) = await self.some([key_id])
        if found is None:
            raise NotFound(f"Key {key_id!r} not found.", param="key_id")
        return found

    async def some(self, key_ids: Sequence[str]) -> list[KeyRecord | None]:
        """Return these keys in this order, with None for each that is gone."""
        found = await self._credentials.some(key_ids)
        return [None if raw is None else KeyRecord.model_validate_json(raw) for raw in found]

    async def all(self) -> list[KeyRecord]:
        """Return every key of every tenant."""
        return [KeyRecord.model_validate_json(raw) for raw in await self._credentials.all()]

    async def page(self, tenant: str, *, cursor: str | None, limit: int) -> list[ApiKey]:
        """Return the tenant's keys older than the key id ``cursor``, newest first."""
        ids = await self._credentials.newest(tenant, before=cursor, most=limit)
        records = [record for record in await self.some(ids) if record is not None]
        used = await self._credentials.last_uses([record.id for record in records])
        return [record.shown(last_used_at=used.get(record.id)) for record in records]

    async def change(self, old: KeyRecord | None, new: KeyRecord | None, entry: AuditEntry) -> None:
        """Store a new key, a changed one, or delete one (``new`` is None).

        Raises Conflict when its tenant has too many, or another caller changed it meanwhile.
        """
        record = cast(KeyRecord, new or old)
        audit = audit_stream(entry.kind, entry.tenant), entry.model_dump_json()
        outcome = await self._credentials.change(record.tenant, record.id, _json(old), _json(new), audit=audit)
        if outcome == "full":
            raise Conflict(f"A tenant may have {KEYS_OF_A_TENANT} keys. Revoke one first.", code="too_many_keys")
        if outcome == "changed":
            raise Conflict("The key was changed by another request. Read it again and retry.", code="key_changed")


def _json(record: KeyRecord | None) -> str:
    return "" if record is None else record.model_dump_json()
