"""Names the Redis keys of files and contents. A tenant's contents share a tag with its quota."""

from dataclasses import dataclass
from typing import Final

from redis.asyncio import Redis

from gateway.queue import JobKeys, JobPartition

FILES_EXPIRING: Final = "memloop:files:expiring"


@dataclass(frozen=True, slots=True)
class Partition(JobPartition):
    """The keys under one tag."""

    def files_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's files, by time."""
        return self.key("files", tenant)

    def reserved_files(self, tenant: str) -> str:
        """Name the sorted set of a tenant's uploads in progress, by the time at which their reservations end."""
        return self.key("files-reserved", tenant)

    def reserved_bytes(self, tenant: str) -> str:
        """Name the hash of the bytes that these uploads announced."""
        return self.key("files-reserved-bytes", tenant)

    def blob(self, tenant: str, sha256: str) -> str:
        """Name the hash of a content: its place and its holders."""
        return self.key("blob", tenant, sha256)

    def blob_bytes(self, tenant: str) -> str:
        """Name the counter of bytes that a tenant stores."""
        return self.key("blob-bytes", tenant)

    @property
    def loose(self) -> str:
        """The sorted set of objects that belong to no content, by the time from which they may be deleted."""
        return self.key("blobs", "loose")

    @property
    def holders(self) -> str:
        """The sorted set of holders, by the time of their next check."""
        return self.key("blobs", "holders")


class Keys(JobKeys[Partition]):
    """The partitions of one Redis."""

    def __init__(self, redis: Redis) -> None:
        super().__init__(redis, Partition)
