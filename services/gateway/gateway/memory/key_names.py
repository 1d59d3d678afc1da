"""Names the Redis keys of memory writes beside those of their jobs."""

from dataclasses import dataclass

from redis.asyncio import Redis

from gateway.queue import JobKeys, JobPartition
from memloop_state.partitions import id_at


@dataclass(frozen=True, slots=True)
class Partition(JobPartition):
    """The keys under one tag."""

    def events_of(self, tenant: str, user_id: str) -> str:
        """Name the sorted set of a user's memory events, by time. A tenant's name contains no colon."""
        return self.key("events", tenant, user_id)

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
