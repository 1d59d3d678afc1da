"""Names the Redis keys of the memory store.

A user's buffers, the lists that lead to them and the fence of the user's lane are changed in one step, so they share a
partition, which follows from the user. A cluster spreads users over its slots.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from memloop.wire.joining import joined
from memloop.wire.memory import Namespace
from memloop_state.partitions import Partition, Partitions
from memloop_state.store.link import RedisLink


@dataclass(frozen=True, slots=True)
class StorePartition(Partition):
    """The keys under one tag."""

    def buffers_of(self, tenant: str, user_id: str) -> str:
        """The hash of a user's buffers."""
        return self.key("buffers", digest(tenant, user_id))

    def buffered_users(self, tenant: str) -> str:
        """The set of those of a tenant's users that have buffers here."""
        return self.key("buffered-users", digest(tenant))

    @property
    def buffers_by_time(self) -> str:
        """The sorted set of all buffers here, by their last change."""
        return self.key("buffers-by-time")

    def fence(self, lane: str) -> str:
        """The key of the lane's newest token."""
        return self.key("lane-fence", digest(lane))

    def erasures(self, lane: str) -> str:
        """The hash of the lane's last erasures, by the ids that they named."""
        return self.key("erasures", digest(lane))

    def writing(self, lane: str) -> str:
        """The sorted set of the lane's writes whose points are on their way into the vector store."""
        return self.key("writing", digest(lane))

    def notes(self, lane: str) -> str:
        """The hash of the points of the lane's writes that are not over."""
        return self.key("unsettled-writes", digest(lane))

    def changes_of(self, tenant: str) -> str:
        """The stream of a tenant's changes."""
        return self.key("changes", digest(tenant))

    def changes_state(self, tenant: str) -> str:
        """The hash of that stream's last entry and of the newest one that was cut off."""
        return self.key("changes-state", digest(tenant))

    @property
    def changes_unsure(self) -> str:
        """The hash of changes whose writes are on their way into the vector store."""
        return self.key("changes-unsure")

    def claim(self, lane: str) -> list[str]:
        """The lane's keys, as the scripts on claims take them (``lua/claims.lua``)."""
        return [self.fence(lane), self.erasures(lane), self.writing(lane), self.notes(lane)]

    def gate(self, site: str) -> list[str]:
        """The keys of the site's gate, as its scripts take them (``lua/gate.lua``)."""
        return [self.of_site(kind, site) for kind in ("gate", "passages", "pending", "changed", "unsettled")]

    def of_site(self, kind: str, site: str) -> str:
        """The key of this kind for the stores that share the collections of a site."""
        return self.key(kind, site)


class Keys(Partitions[StorePartition]):
    """The partitions of one Redis, with the keys of the store. A lane and a tenant are found ``of_name``."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__(link, StorePartition)

    def of_user(self, tenant: str, user_id: str) -> StorePartition:
        """Returns the partition that holds a user's keys."""
        return self.of_name(Namespace(tenant=tenant, user_id=user_id).lane())


@lru_cache(maxsize=4096)
def digest(*parts: str) -> str:
    """A short name for user-chosen text inside a Redis key."""
    return hashlib.sha256(joined(*parts).encode()).hexdigest()[:32]
