"""Takes an upload's part of the tenant's quota before its first byte is written.

A reservation has the id of its file and lasts until the file is stored or its upload has failed: beside the stored file
it no longer counts.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from memloop.wire.errors import DependencyError, TooLarge
from memloop_state.contents import LEASE_S, Contents, Quota
from memloop_state.link import State


def too_many_files(quota: Quota) -> TooLarge:
    """Return the error of a file for which there is no room."""
    return TooLarge(f"This tenant may have at most {quota.files} files.", code="file_quota_exceeded")


def too_many_bytes(quota: Quota) -> TooLarge:
    """Return the error of a content for which there is no room."""
    message = f"This tenant may store at most {quota.bytes} bytes. Delete files to free space."
    return TooLarge(message, code="storage_quota_exceeded")


class Reservations:
    """The reservations of all tenants. Methods raise Unavailable."""

    def __init__(self, state: State, quota: Quota) -> None:
        self._quota = quota
        self._contents = Contents(state, quota)

    @asynccontextmanager
    async def held(self, tenant: str, file_id: str, *, size_bytes: int) -> AsyncGenerator[None]:
        """Hold room for a file during the block. Raises TooLarge without it."""
        outcome = await self._contents.reserve(tenant, file_id, size_bytes=size_bytes)
        if outcome != "reserved":
            raise too_many_files(self._quota) if outcome == "files" else too_many_bytes(self._quota)
        renewing = asyncio.create_task(self._renew(tenant, file_id))
        try:
            yield
        finally:
            renewing.cancel()
            with suppress(DependencyError):
                await asyncio.shield(self._contents.give_back(tenant, file_id))

    async def _renew(self, tenant: str, file_id: str) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 3)
            with suppress(DependencyError):
                await self._contents.extend(tenant, file_id)
