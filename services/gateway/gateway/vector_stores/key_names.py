"""Names the Redis keys of vector stores beside those of the jobs that index their files."""

from dataclasses import dataclass

from redis.asyncio import Redis

from gateway.queue import JobKeys, JobPartition


@dataclass(frozen=True, slots=True)
class Partition(JobPartition):
    """The keys under one tag."""

    def vector_store(self, tenant: str, store_id: str) -> str:
        """Name the hash of a vector store: its fields, and the number of its files by status."""
        return self.key("vector-store", tenant, store_id)

    def vector_store_files(self, tenant: str, store_id: str) -> str:
        """Name the hash of a vector store's files."""
        return self.key("vector-store-files", tenant, store_id)

    def vector_stores_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's vector stores, by time."""
        return self.key("vector-stores", tenant)

    def vector_stores_with(self, tenant: str, file_id: str) -> str:
        """Name the set of the vector stores that a file is in."""
        return self.key("vector-stores-with", tenant, file_id)

    def indexing_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's files that are being indexed, by time."""
        return self.key("indexing", tenant)

    @property
    def vector_stores_ending(self) -> str:
        """The sorted set of vector stores that expire, by the time."""
        return self.key("vector-stores-ending")


class Keys(JobKeys[Partition]):
    """The partitions of one Redis."""

    def __init__(self, redis: Redis) -> None:
        super().__init__(redis, Partition)
