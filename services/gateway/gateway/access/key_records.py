"""Stores API keys created at run time in Redis, by hash, with a change log that all processes follow.

One script applies a change to the record, the tenant's index, the change log and the audit log atomically.
"""

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from redis.asyncio import Redis

from gateway.access import key_names as keys
from gateway.access.audit import ENTRIES_KEPT
from memloop.wire.audit import AuditEntry
from memloop.wire.base import Wire
from memloop.wire.errors import Conflict, NotFound
from memloop.wire.keys import ApiKey, Scope
from memloop_state.link import redis_errors
from memloop_state.scripts import Script, entries, entry_list, text

KEYS_OF_A_TENANT: Final = 1000
_SECRET_BYTES: Final = 32
_PREFIX_CHARS: Final = 10
_LOG_KEPT: Final = 10_000
_START: Final = "0-0"

_CHANGE = """
-- KEYS: records, the tenant's index, log of changes, last uses, audit log
-- ARGV: id, record before ('' = none), record after ('' = none), keys per tenant, audit entry, length of both logs
local kept = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if kept == ARGV[3] and kept ~= '' then return 'done' end -- by this change, whose reply was lost
if kept ~= ARGV[2] then return 'changed' end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('HDEL', KEYS[4], ARGV[1])
else
  if ARGV[2] == '' and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 'full' end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  redis.call('ZADD', KEYS[2], 0, ARGV[1])
end
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[6], '*', 'id', ARGV[1])
redis.call('XADD', KEYS[5], 'MAXLEN', '~', ARGV[7], '*', 'entry', ARGV[5])
return 'done'
"""


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
        fields = self.model_dump(exclude={"prefix", "digest", "old_digest", "old_until"})
        return KeyRecord(
            **fields, prefix=prefix_of(secret), digest=digest_of(secret), old_digest=old_digest, old_until=old_until
        )


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
    """Reads and changes key records. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._change = Script(redis, _CHANGE, acknowledged=True)

    async def create(self, record: KeyRecord, entry: AuditEntry) -> None:
        """Store a new key. Raises Conflict when its tenant has too many."""
        await self._changed(None, record, entry)

    async def replace(self, old: KeyRecord, new: KeyRecord, entry: AuditEntry) -> None:
        """Store a changed key. Raises Conflict when another caller changed it meanwhile."""
        await self._changed(old, new, entry)

    async def remove(self, record: KeyRecord, entry: AuditEntry) -> None:
        """Delete a key. Raises Conflict when another caller changed it meanwhile."""
        await self._changed(record, None, entry)

    async def get(self, key_id: str) -> KeyRecord:
        """Return one key. Raises NotFound."""
        (found,) = await self.some([key_id])
        if found is None:
            raise NotFound(f"Key {key_id!r} not found.", param="key_id")
        return found

    async def some(self, key_ids: Sequence[str]) -> list[KeyRecord | None]:
        """Return these keys in this order, with None for each that is gone."""
        if not key_ids:
            return []
        with redis_errors():
            found: Any = await self._redis.hmget(keys.API_KEYS, list(key_ids))
        return [None if raw is None else _record(raw) for raw in found]

    async def all(self) -> list[KeyRecord]:
        """Return every key of every tenant."""
        with redis_errors():
            found: Any = await self._redis.hvals(keys.API_KEYS)
        return [_record(raw) for raw in found]

    async def page(self, tenant: str, *, cursor: str | None, limit: int) -> list[ApiKey]:
        """Return the tenant's keys older than the key id ``cursor``, newest first."""
        newest = f"({cursor}" if cursor else "+"
        with redis_errors():
            found: Any = await self._redis.zrevrangebylex(keys.api_keys_of(tenant), newest, "-", start=0, num=limit)
        ids = [text(id_) for id_ in cast(Sequence[object], found)]
        records = [record for record in await self.some(ids) if record is not None]
        used = await self._last_uses([record.id for record in records])
        return [record.shown(last_used_at=used.get(record.id)) for record in records]

    async def newest_change(self) -> str:
        """Return the id of the change log's last entry."""
        with redis_errors():
            found: Any = await self._redis.xrevrange(keys.API_KEYS_LOG, count=1)
        return next((id_ for id_, _ in entry_list(found)), _START)

    async def changes(self, after: str, *, wait_ms: int) -> tuple[str, list[str]]:
        """Wait up to ``wait_ms`` for changes after ``after``. Returns the log's end and the ids of the changed keys."""
        with redis_errors():
            found = entries(await self._redis.xread({keys.API_KEYS_LOG: after}, block=wait_ms))
        return (found[-1][0] if found else after), [fields["id"] for _, fields in found]

    async def note_uses(self, used_at: Mapping[str, int]) -> None:
        """Store the times at which keys were last used."""
        if used_at:
            with redis_errors():
                await cast(Any, self._redis).hset(keys.API_KEYS_USED, mapping=used_at)

    async def _last_uses(self, key_ids: Sequence[str]) -> dict[str, int]:
        if not key_ids:
            return {}
        with redis_errors():
            found: Any = await self._redis.hmget(keys.API_KEYS_USED, list(key_ids))
        return {id_: int(raw) for id_, raw in zip(key_ids, found, strict=True) if raw is not None}

    async def _changed(self, old: KeyRecord | None, new: KeyRecord | None, entry: AuditEntry) -> None:
        record = cast(KeyRecord, new or old)
        audit = keys.audit(entry.kind, entry.tenant)
        touched = [keys.API_KEYS, keys.api_keys_of(record.tenant), keys.API_KEYS_LOG, keys.API_KEYS_USED, audit]
        args = [record.id, _json(old), _json(new), KEYS_OF_A_TENANT, entry.model_dump_json(), _LOG_KEPT, ENTRIES_KEPT]
        outcome = await self._change(touched, args)
        if outcome == "full":
            raise Conflict(f"A tenant may have {KEYS_OF_A_TENANT} keys. Revoke one first.", code="too_many_keys")
        if outcome == "changed":
            raise Conflict("The key was changed by another request. Read it again and retry.", code="key_changed")


def _json(record: KeyRecord | None) -> str:
    return "" if record is None else record.model_dump_json()


def _record(raw: object) -> KeyRecord:
    return KeyRecord.model_validate_json(text(raw))
