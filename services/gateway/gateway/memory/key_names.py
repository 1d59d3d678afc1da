"""Names the Redis keys of memory writes beside those of their jobs."""

from dataclasses import dataclass
from typing import Final

from redis.asyncio import Redis

from gateway.queue import JobKeys, JobPartition
from memloop_state.partitions import id_at

WRITES_REFUSED: Final = "memloop:writes-refused"
WRITER_DECIDED: Final = "memloop:writer-decided"
"""The time in ms of the last usable decision."""


@dataclass(frozen=True, slots=True)
class Partition(JobPartition):
    """The keys under one tag."""

    def events_of(self, tenant: str, user_id: str) -> str:
        """Name the sorted set of a user's memory events, by time. A tenant's name contains no colon."""
        return self.key("events", tenant, user_id)

    def failed_write_of(self, tenant: str, user_id: str) -> str:
        """Name the record of a user's last failed memory write."""
        return self.key("failed-write", tenant, user_id)

    @property
    def kept_events(self) -> str:
        """The sorted set of the writes here that were kept verbatim, by the time since when."""
        return self.key("kept-events")


class Keys(JobKeys[Partition]):
    """The partitions of one Redis."""

    def __init__(self, redis: Redis) -> None:
        super().__init__(redis, Partition)


def event_id(lane: str, digits: str) -> str:
    """Make the id of a memory write in a lane from 32 hex digits, of which 30 are kept."""
    return id_at("evt_", lane, digits)
