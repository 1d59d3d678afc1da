"""Contents by hash, once per tenant, with their holders and the tenant's quota of files and bytes.

A content counts towards the quota once per holder. A *place* in the storage belongs either to a content or to the
*loose* ones, with the time from which it may be deleted. An upload reserves room for its file before its first byte; a
process that dies leaves the reservation for a minute.
"""

import time
from dataclasses import astuple, dataclass
from typing import Final, Literal, TypeAlias

from memloop_state.indexes import Indexes
from memloop_state.link import State, sent
from memloop_state.steps import Partitions, Steps

LEASE_S: Final = 60.0
_SWEPT_AT_ONCE: Final = 200
Reserved: TypeAlias = Literal["reserved", "files", "bytes"]


@dataclass(frozen=True, slots=True)
class Quota:
    """The most files of a tenant, and the most bytes that its files, texts and read documents hold."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Hold:
    """One holder of a content: who holds it, of which tenant, and the SHA-256 (hex) of the content."""

    holder: str
    tenant: str
    sha256: str


class Contents:
    """The contents of all tenants. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State, quota: Quota) -> None:
        self._quota = quota
        self._link = redis
        self._parts = Partitions(redis)
        self._steps = Steps(redis, "contents")
        self._indexes = Indexes(redis)

    async def reserve(self, tenant: str, file_id: str, *, size_bytes: int) -> Reserved:
        """Hold room for one more file until it is stored or given back, or the lease ends.

        Returns ``files`` or ``bytes``, and holds nothing, where the tenant has no room for another one or its bytes.
        """
        here = self._parts.of_name(tenant)
        keys = [here.key("files", tenant), here.key("files-reserved", tenant), here.key("blob-bytes", tenant)]
        args = [file_id, size_bytes, self._quota.files, self._quota.bytes, int(LEASE_S * 1000)]
        return await self._steps("reserve", keys, args)

    async def used(self, tenant: str) -> int:
        """Return the bytes that the tenant's contents hold."""
        return int(await sent(self._link, "GET", self._parts.of_name(tenant).key("blob-bytes", tenant)) or 0)

    async def extend(self, tenant: str, file_id: str, *, size_bytes: int) -> None:
        """Hold the room for another lease."""
        reserved = self._parts.of_name(tenant).key("files-reserved", tenant)
        await self._steps("extend", [reserved], [f"{size_bytes} {file_id}", int(LEASE_S * 1000)])

    async def give_back(self, tenant: str, file_id: str, *, size_bytes: int) -> None:
        reserved = self._parts.of_name(tenant).key("files-reserved", tenant)
        await self._indexes.remove(reserved, f"{size_bytes} {file_id}")

    async def claim(self, hold: Hold, *, place: str, size_bytes: int, check_at: float) -> str | None:
        """Add a holder; return the content's place: its first one, or ``place``. None over the tenant's quota."""
        args = [*astuple(hold), place, size_bytes, self._quota.bytes, repr(check_at)]
        return await self._steps("claim", self._names(hold), args, acknowledged=True)

    async def release(self, hold: Hold) -> str | None:
        """Remove a holder. Returns the place of a content that has none any more, which is loose now."""
        args = [*astuple(hold), repr(time.time())]
        return await self._steps("release", self._names(hold), args)

    async def add_loose(self, tenant: str, place: str, *, until: float) -> None:
        """Let a place be deleted from then on, unless a content claims it."""
        await self._indexes.add(self._parts.of_name(tenant).key("blobs", "loose"), {place: until})

    async def remove_loose(self, tenant: str, place: str) -> None:
        """Forget a place whose object is deleted."""
        await self._indexes.remove(self._parts.of_name(tenant).key("blobs", "loose"), place)

    async def loose(self) -> list[str]:
        """Return places that may be deleted: 200 of each partition at most."""
        return await self._due([part.key("blobs", "loose") for part in self._parts.partitions])

    async def to_check(self) -> list[Hold]:
        """Return holders whose check is due: 200 of each partition at most."""
        lines = await self._due([part.key("blobs", "holders") for part in self._parts.partitions])
        return [Hold(*line.split(" ")) for line in lines]

    async def check_again(self, hold: Hold, *, at: float) -> None:
        """Set the time of a holder's next check."""
        holders = self._parts.of_name(hold.tenant).key("blobs", "holders")
        await self._indexes.add(holders, {" ".join(astuple(hold)): at}, known=True)

    async def _due(self, indexes: list[str]) -> list[str]:
        due = [await self._indexes.due(index, time.time(), most=_SWEPT_AT_ONCE) for index in indexes]
        return [one for some in due for one in some]

    def _names(self, hold: Hold) -> list[str]:
        here = self._parts.of_name(hold.tenant)
        content = here.key("blob", hold.tenant, hold.sha256)
        return [content, here.key("blob-bytes", hold.tenant), here.key("blobs", "loose"), here.key("blobs", "holders")]
