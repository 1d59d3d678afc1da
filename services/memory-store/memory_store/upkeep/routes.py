"""Routes for the operator: the collections, re-embedding, the flush that makes erasures physical, a snapshot."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from fastapi.responses import StreamingResponse
from pydantic import Field

from memloop.wire.base import Wire
from memloop_service import of_app
from memory_store.items.routes import store_router
from memory_store.upkeep.copying import Progress
from memory_store.upkeep.jobs import Flushed, Upkeep
from memory_store.vectors.port import VectorState

_BLOCK_BYTES: Final = 1 << 20


class CollectionList(Wire):
    """The collection in service, those kept beside it, and the newest job."""

    in_service: str
    kept: tuple[str, ...]
    job: Progress | None


class Reembed(Wire):
    """``POST /v1/admin/reembed``."""

    model: str = Field(min_length=1, max_length=512)


UpkeepDep: TypeAlias = Annotated[Upkeep, of_app("upkeep")]
router = store_router(prefix="/v1/admin", tags=["admin"])


@router.get("/collections")
async def collections(upkeep: UpkeepDep) -> CollectionList:
    in_service, kept = await upkeep.collections()
    return CollectionList(in_service=in_service, kept=kept, job=await upkeep.job())


@router.get("/vectors")
async def vectors(upkeep: UpkeepDep) -> VectorState:
    return await upkeep.vectors()


@router.delete("/collections/{name}", status_code=204)
async def drop(name: str, upkeep: UpkeepDep) -> None:
    await upkeep.drop(name)


@router.post("/reembed", status_code=202)
async def reembed(asked: Reembed, upkeep: UpkeepDep) -> Progress:
    return await upkeep.reembed(asked.model)


@router.post("/flush")
async def flush(upkeep: UpkeepDep) -> Flushed:
    return await upkeep.flush()


@router.get("/snapshot")
async def snapshot(upkeep: UpkeepDep) -> StreamingResponse:
    return StreamingResponse(_blocks(await upkeep.archive()), media_type="application/x-tar")


async def _blocks(file: Path) -> AsyncGenerator[bytes]:
    """The file, which is deleted then."""
    try:
        with await asyncio.to_thread(file.open, "rb") as opened:
            while block := await asyncio.to_thread(opened.read, _BLOCK_BYTES):
                yield block
    finally:
        await asyncio.to_thread(file.unlink)
