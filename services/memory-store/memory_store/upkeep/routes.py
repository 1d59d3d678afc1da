"""Routes for the operator: the collections, re-embedding, the flush that makes erasures physical, a snapshot."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime, Field

from memloop.wire.base import Wire
from memory_store.upkeep.jobs import Upkeep
from memory_store.upkeep.progress import Kind, Progress, Status

_BLOCK_BYTES: Final = 1 << 20


class Job(Wire):
    """A copy of the whole collection."""

    kind: Kind
    target: str
    status: Status
    done: int
    total: int
    started_at: AwareDatetime
    ended_at: AwareDatetime | None
    error: str | None


class CollectionList(Wire):
    """The collection in service, those kept beside it, and the newest job."""

    in_service: str
    kept: tuple[str, ...]
    job: Job | None


class VectorState(Wire):
    """A Qdrant server, its nodes, and how the collection in service lies on them; all null with embedded vectors."""

    version: str | None = None
    distributed: bool | None = None
    nodes: int | None = None
    shards: int | None = None
    copies: int | None = None
    copies_asked: int | None = None
    write_consistency: int | None = None
    warning: str | None = None


class Reembed(Wire):
    """``POST /v1/admin/reembed``."""

    model: str = Field(min_length=1, max_length=512)


class FlushResult(Wire):
    """The new files' collection, how many memories it has, which collections and files of Redis were replaced."""

    collection: str
    memories: int
    dropped: tuple[str, ...]
    redis: tuple[str, ...]


def admin_routes(new_router: partial[APIRouter], upkeep: Upkeep) -> APIRouter:
    """Everything under ``/v1/admin``."""
    router = new_router(prefix="/v1/admin", tags=["admin"])

    @router.get("/collections")
    async def collections() -> CollectionList:
        in_service, kept = await upkeep.collections()
        return CollectionList(in_service=in_service, kept=kept, job=_job(await upkeep.job()))

    @router.get("/vectors")
    async def vectors() -> VectorState:
        state = await upkeep.vectors()
        return VectorState.model_validate({**asdict(state), "warning": state.warning}) if state else VectorState()

    @router.delete("/collections/{name}", status_code=204)
    async def drop(name: str) -> None:
        await upkeep.drop(name)

    @router.post("/reembed", status_code=202)
    async def reembed(asked: Reembed) -> Job | None:
        return _job(await upkeep.reembed(asked.model))

    @router.post("/flush")
    async def flush() -> FlushResult:
        done = await upkeep.flush()
        return FlushResult(collection=done.collection, memories=done.memories, dropped=done.dropped, redis=done.redis)

    @router.get("/snapshot")
    async def snapshot() -> StreamingResponse:
        return StreamingResponse(_blocks(await upkeep.archive()), media_type="application/x-tar")

    _ = collections, vectors, drop, reembed, flush, snapshot
    return router


async def _blocks(file: Path) -> AsyncGenerator[bytes]:
    """The file, which is deleted then."""
    try:
        with await asyncio.to_thread(file.open, "rb") as opened:
            while block := await asyncio.to_thread(opened.read, _BLOCK_BYTES):
                yield block
    finally:
        await asyncio.to_thread(file.unlink)


def _job(progress: Progress | None) -> Job | None:
    return Job.model_validate(vars(progress)) if progress else None
