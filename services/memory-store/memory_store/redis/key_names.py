"""Every name that the memory store uses in Redis.

A user's buffers, the lists that lead to them and the fence of the user's lane are changed in one step, so they carry
one tag, which follows from the user (``memloop_service.redis_link``). A cluster spreads users over its slots.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memloop.wire.memory import Namespace
from memloop_service.redis_link import place_of, tags_of
from memory_store.redis.gate_scripts import KINDS
from memory_store.redis.link import RedisLink


@dataclass(frozen=True, slots=True)
class Partition:
    """The names under one tag."""

    tag: str

    def buffers_of(self, tenant: str, user_id: str) -> str:
        """The hash of a user's buffers."""
        return f"memloop:{{{self.tag}}}:buffers:{digest(tenant, user_id)}"

    def buffered_users(self, tenant: str) -> str:
        """The set of those of a tenant's users that have buffers here."""
        return f"memloop:{{{self.tag}}}:buffered-users:{digest(tenant)}"

    @property
    def buffers_by_time(self) -> str:
        """The sorted set of all buffers here, by their last change."""
        return f"memloop:{{{self.tag}}}:buffers-by-time"

    def fence(self, lane: str) -> str:
        """The key of the lane's newest token."""
        return f"memloop:{{{self.tag}}}:lane-fence:{digest(lane)}"

    def erasures(self, lane: str) -> str:
        """The hash of the lane's last erasures, by the ids that they named."""
        return f"memloop:{{{self.tag}}}:erasures:{digest(lane)}"

    def writing(self, lane: str) -> str:
        """The sorted set of the lane's writes whose points are on their way into the vector store."""
        return f"memloop:{{{self.tag}}}:writing:{digest(lane)}"

    def notes(self, lane: str) -> str:
        """The hash of the points of the lane's writes that are not over."""
        return f"memloop:{{{self.tag}}}:unsettled-writes:{digest(lane)}"

    def changes_of(self, tenant: str) -> str:
        """The stream of a tenant's changes."""
        return f"memloop:{{{self.tag}}}:changes:{digest(tenant)}"

    def changes_state(self, tenant: str) -> str:
        """The hash of that stream's last entry and of the newest one that was cut off."""
        return f"memloop:{{{self.tag}}}:changes-state:{digest(tenant)}"

    @property
    def changes_unsure(self) -> str:
        """The hash of changes whose writes are on their way into the vector store."""
        return f"memloop:{{{self.tag}}}:changes-unsure"

    def claim(self, lane: str) -> list[str]:
        """The lane's keys, as the scripts on claims take them (``erasure_scripts``)."""
        return [self.fence(lane), self.erasures(lane), self.writing(lane), self.notes(lane)]

    def gate(self, site: str) -> list[str]:
        """The keys of the site's gate, as its scripts take them (``gate_scripts``)."""
        return [self.of_site(kind, site) for kind in KINDS]

    def of_site(self, kind: str, site: str) -> str:
        """The key of this kind for the stores that share the collections of a site."""
        return f"memloop:{{{self.tag}}}:{kind}:{site}"


class KeyNames:
    """The partitions of one Redis: one of a single server, twelve of a cluster."""

    def __init__(self, link: RedisLink) -> None:
        self.partitions: Sequence[Partition] = tuple(Partition(tag) for tag in tags_of(link))

    def of_user(self, tenant: str, user_id: str) -> Partition:
        """Returns the partition that holds a user's keys."""
        return self.of_lane(Namespace(tenant=tenant, user_id=user_id).lane())

    def of_tenant(self, tenant: str) -> Partition:
        """Returns the partition that holds what a tenant has in one place."""
        return self.of_lane(tenant)

    def of_lane(self, lane: str) -> Partition:
        """Returns the partition that holds a lane's keys."""
        return self.partitions[place_of(lane) % len(self.partitions)]


@lru_cache(maxsize=4096)
def digest(*parts: str) -> str:
    """A short name for user-chosen text inside a Redis key."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]
