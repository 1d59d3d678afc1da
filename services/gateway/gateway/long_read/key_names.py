"""Names the Redis keys of long reads beside those of their jobs."""

from dataclasses import dataclass

from gateway.queue import JobKeys, JobPartition
from memloop_state.link import State


@dataclass(frozen=True, slots=True)
class Partition(JobPartition):
    """The keys under one tag."""

    def reads_of(self, tenant: str) -> str:
        """Name the sorted set of the tenant's reads in this partition, by time."""
        return self.key("reads", tenant)


class Keys(JobKeys[Partition]):
    """The partitions of one Redis."""

    def __init__(self, state: State) -> None:
        super().__init__(state, Partition)
