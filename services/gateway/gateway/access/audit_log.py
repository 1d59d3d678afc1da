"""The audit log in Redis: a capped stream for each tenant and kind, so that denials push no admin action out."""

from collections.abc import Sequence
from typing import Any, Final

from redis.asyncio import Redis

from gateway.redis import key_names as keys
from gateway.redis.lua import entry_list, redis_errors
from memloop.wire.audit import AuditEntry, AuditKind, AuditPage, AuditRecord

ENTRIES_KEPT: Final = 10_000
"""Of each stream, at least."""


class AuditLog:
    """The durable log. Methods raise Unavailable and Timeout when Redis is gone."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Keep these entries."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for entry in entries:
                key, fields = keys.audit(entry.kind, entry.tenant), {"entry": entry.model_dump_json()}
                pipe.xadd(key, fields, maxlen=ENTRIES_KEPT, approximate=True)  # pyright: ignore[reportArgumentType]
            with redis_errors():
                await pipe.execute()

    async def page(self, kind: AuditKind, tenant: str, *, cursor: str | None, limit: int) -> AuditPage:
        """Entries that are older than the one with the id ``cursor``, newest first."""
        newest = f"({cursor}" if cursor else "+"
        with redis_errors():
            found: Any = await self._redis.xrevrange(keys.audit(kind, tenant), max=newest, count=limit + 1)
        rows = entry_list(found)
        data = tuple(_record(id_, fields["entry"]) for id_, fields in rows[:limit])
        return AuditPage(data=data, next_cursor=data[-1].id if len(rows) > limit else None)


def _record(id_: str, raw: str) -> AuditRecord:
    return AuditRecord(id=id_, **AuditEntry.model_validate_json(raw).model_dump())
