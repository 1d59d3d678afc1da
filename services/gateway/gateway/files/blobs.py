"""Stores each content once per tenant, by hash, for as long as a job holds it.

Holders are jobs: a file for its bytes (``file:{id}``) and its text (``text:{id}``), a read for its document
(``read:{id}``). A content counts towards the tenant's quota once per holder. An object belongs either to a content
or to the set of *loose* objects, with the time from which it may be deleted: aborted uploads and contents without a
holder end there, and the worker deletes them. The worker also releases holders whose job ended in a crash.
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from gateway.files.storage import Storage
from gateway.queue import JobRecords
from memloop.chores import renewed
from memloop.wire.base import Wire
from memloop.wire.errors import DependencyError, TooLarge
from memloop_state.contents import LEASE_S, Contents, Hold, Quota
from memloop_state.link import State

_UPLOAD_MAY_TAKE_S: Final = 6 * 3600.0
_FIRST_LOOK_S: Final = 600.0
_NEXT_LOOK_S: Final = 3600.0


def too_many_files(quota: Quota) -> TooLarge:
    """Return the error of a file for which there is no room."""
    return TooLarge(f"This tenant may have at most {quota.files} files.", code="file_quota_exceeded")


def too_many_bytes(quota: Quota) -> TooLarge:
    """Return the error of a content for which there is no room."""
    message = f"This tenant may store at most {quota.bytes} bytes. Delete files to free space."
    return TooLarge(message, code="storage_quota_exceeded")


class Blob(Wire):
    """A content of a tenant: its SHA-256 (hex), size and place."""

    tenant: str
    sha256: str
    size_bytes: int
    place: str


class Blobs:
    """The records of the contents. Methods raise Unavailable and Timeout when the state or the storage fails."""

    def __init__(self, state: State, storage: Storage, quota: Quota) -> None:
        self._quota = quota
        self._jobs = JobRecords(state)
        self.contents = Contents(state, quota)
        self.storage = storage

    @asynccontextmanager
    async def reserved(self, tenant: str, file_id: str, *, size_bytes: int) -> AsyncGenerator[None]:
        """Hold room for a file during the block. Raises TooLarge without it."""
        outcome = await self.contents.reserve(tenant, file_id, size_bytes=size_bytes)
        if outcome != "reserved":
            raise too_many_files(self._quota) if outcome == "files" else too_many_bytes(self._quota)
        extend = partial(self.contents.extend, tenant, file_id, size_bytes=size_bytes)
        try:
            async with renewed(extend, every_s=LEASE_S / 3):
                yield
        finally:
            with suppress(DependencyError):
                await asyncio.shield(self.contents.give_back(tenant, file_id, size_bytes=size_bytes))

    async def written(
        self, tenant: str, blocks: AsyncIterator[bytes], *, max_bytes: int | None = None, param: str | None = None
    ) -> Blob:
        """Write a content that nothing holds yet. After an error nothing is left of it.

        Raises TooLarge for a file of more than ``max_bytes``, or than the tenant has room for, and the errors of
        ``blocks``.
        """
        place, digest, size = f"{tenant}/{secrets.token_hex(16)}", hashlib.sha256(), 0
        room = self._quota.bytes - await self.contents.used(tenant)
        await self.contents.add_loose(tenant, place, until=time.time() + _UPLOAD_MAY_TAKE_S)
        async with self.storage.writing(place) as writer:
            async for block in blocks:
                size += len(block)
                if max_bytes is not None and size > max_bytes:
                    raise TooLarge(f"A file may have at most {max_bytes} bytes.", param=param, code="file_too_large")
                if size > room:
                    raise too_many_bytes(self._quota)
                digest.update(block)
                await writer.write(block)
        return Blob(tenant=tenant, sha256=digest.hexdigest(), size_bytes=size, place=place)

    async def claim(self, written: Blob, *, holder: str) -> Blob:
        """Hold a written content. The returned place differs when the tenant already stores the same content.

        Raises TooLarge over the tenant's quota; the written object is then deleted.
        """
        place = await self._held(written, holder)
        if place != written.place:
            await self.drop(written.place)
        if place is None:
            raise too_many_bytes(self._quota)
        return written.model_copy(update={"place": place})

    async def hold(self, blob: Blob, *, holder: str) -> None:
        """Add a holder to a content that another holder keeps. Raises TooLarge over the tenant's quota."""
        if await self._held(blob, holder) is None:
            raise too_many_bytes(self._quota)

    async def release(self, blob: Blob, *, holder: str) -> None:
        """Release a hold; a content without holders is deleted. Does nothing when it was not held.

        If the deletion fails, the sweep repeats it.
        """
        if place := await self.contents.release(Hold(holder, blob.tenant, blob.sha256)):
            await self.drop(place)

    async def drop(self, place: str) -> None:
        """Delete an object that was written but not claimed."""
        await self.storage.delete(place)
        await self.contents.remove_loose(self.storage.tenant_of(place), place)

    async def sweep(self) -> int:
        """Release contents held by finished jobs and delete expired objects. Returns the number deleted."""
        for hold in await self.contents.to_check():
            kind, job_id = hold.holder.split(":", 1)
            (status,) = await self._jobs.get(job_id, "status")
            if not status or (kind == "read" and status not in {"queued", "in_progress"}):
                await self.contents.release(hold)
            else:
                await self.contents.check_again(hold, at=time.time() + _NEXT_LOOK_S)
        places = await self.contents.loose()
        for place in places:
            await self.drop(place)
        return len(places)

    async def _held(self, blob: Blob, holder: str) -> str | None:
        """Hold the content; return its place, None over the tenant's quota."""
        return await self.contents.claim(
            Hold(holder, blob.tenant, blob.sha256),
            place=blob.place,
            size_bytes=blob.size_bytes,
            check_at=time.time() + _FIRST_LOOK_S,
        )
