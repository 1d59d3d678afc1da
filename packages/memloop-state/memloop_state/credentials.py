"""API keys as texts by id, with the log of their changes that all processes follow, and the audit log.

They share a tag with the log of their changes and the audit stream ``admin``, because one step writes all three.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, Literal, TypeAlias, cast

from memloop_state.indexes import Streams
from memloop_state.link import State, sent
from memloop_state.steps import Steps

API_KEYS: Final = "memloop:{api-keys}"
API_KEYS_LOG: Final = "memloop:{api-keys}:log"
ENTRIES_KEPT: Final = 10_000
"""The minimum number of entries that each stream retains."""
_API_KEYS_USED: Final = "memloop:{api-keys}:used"
Changed: TypeAlias = Literal["done", "changed", "full"]


def api_keys_of(tenant: str) -> str:
    """Name the sorted set of a tenant's keys."""
    return f"memloop:{{api-keys}}:of:{tenant}"


def audit_stream(kind: str, tenant: str) -> str:
    """Name a stream of the audit log. A tenant's name contains no colon; entries without a tenant have their own."""
    return f"memloop:{{api-keys}}:audit:{kind}:{tenant}" if kind == "admin" else f"memloop:audit:{kind}:{tenant}"


class Credentials:
    """The keys of all tenants. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State, *, most: int) -> None:
        self._redis: Any = redis
        self._most = most
        self._streams = Streams(redis)
        self._steps = Steps(redis, "access")

    async def change(self, tenant: str, key_id: str, before: str, after: str, *, audit: tuple[str, str]) -> Changed:
        """Replace a key that is as it was ``before`` ('' = none), and log that with the audit stream's entry.

        Returns ``changed`` where another caller was faster, ``full`` where the tenant has too many.
        """
        stream, entry = audit
        touched = [API_KEYS, api_keys_of(tenant), API_KEYS_LOG, _API_KEYS_USED, stream]
        args = [key_id, before, after, self._most, entry, ENTRIES_KEPT, ENTRIES_KEPT]
        return cast(Changed, await self._steps("change", touched, args, acknowledged=True))

    async def some(self, key_ids: Sequence[str]) -> list[str | None]:
        """Return these keys in this order, with None for each that is gone."""
        return await self._named(API_KEYS, key_ids)

    async def all(self) -> list[str]:
        """Return every key of every tenant."""
        return await sent(self._redis, "HVALS", API_KEYS)

    async def newest(self, tenant: str, *, before: str | None, most: int) -> list[str]:
        """Return the ids of the tenant's keys older than one, the newest first."""
        highest = f"({before}" if before else "+"
        return await sent(self._redis, "ZREVRANGEBYLEX", api_keys_of(tenant), highest, "-", "LIMIT", 0, most)

    async def newest_change(self) -> str:
        """Return the id of the change log's last entry."""
        return await self._streams.last(API_KEYS_LOG) or "0-0"

    async def changes(self, after: str, *, wait_ms: int) -> tuple[str, list[str]]:
        """Wait up to ``wait_ms`` for changes after ``after``. Returns the log's end and the ids of the changed keys."""
        streams = await self._streams.wait({API_KEYS_LOG: after}, wait_ms=wait_ms)
        found = [entry for _, entries in streams for entry in entries]
        return (found[-1][0] if found else after), [fields["id"] for _, fields in found]

    async def note_uses(self, used_at: Mapping[str, int]) -> None:
        """Store the times at which keys were last used."""
        if used_at:
            await sent(self._redis, "HSET", _API_KEYS_USED, *chain.from_iterable(used_at.items()))

    async def last_uses(self, key_ids: Sequence[str]) -> dict[str, int]:
        """Return when these keys were last used, as far as they were."""
        found = await self._named(_API_KEYS_USED, key_ids)
        return {key_id: int(at) for key_id, at in zip(key_ids, found, strict=True) if at is not None}

    async def _named(self, key: str, names: Sequence[str]) -> list[str | None]:
        return await sent(self._redis, "HMGET", key, *names) if names else []
