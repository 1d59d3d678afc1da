"""``/v1/vector_stores``: uploaded files that ``file_search`` searches, as OpenAI's API has them.

The worker cuts the files into chunks (docs/decisions/0082-vector-stores-in-the-memory-store.md).
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, cast

from fastapi import APIRouter, Depends, Query, Request

from gateway.access import AllowanceDep, PrincipalDep, Room, namespace_named, needs
from gateway.vector_stores.records import Attached, between
from gateway.vector_stores.schemas import (
    FileAttach,
    FileBatchCreate,
    FileStatus,
    FileUpdate,
    SearchPage,
    VectorStore,
    VectorStoreCreate,
    VectorStoreDeleted,
    VectorStoreFile,
    VectorStoreFileBatch,
    VectorStoreFileDeleted,
    VectorStoreFilePage,
    VectorStorePage,
    VectorStoreSearch,
    VectorStoreUpdate,
)
from gateway.vector_stores.slice import VectorStoresDep
from memloop_service import ERRORS
from memloop_service.http import body_of, read_ours
from memloop_state.owners import Owner

_PATH: Final = "/v1/vector_stores"
Cursor: TypeAlias = Annotated[str | None, Query(max_length=64)]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=100)]
Order: TypeAlias = Literal["asc", "desc"]


@dataclass(frozen=True, slots=True)
class FilePaging:
    """The query of a list of files."""

    limit: Limit = 20
    order: Order = "desc"
    after: Cursor = None
    before: Cursor = None
    filter: FileStatus | None = None

    def page(self, every: Sequence[Attached]) -> VectorStoreFilePage:
        """Return the page of these files, oldest first. Raises NotFound for an unknown id."""
        files = {one.file.id: one.file for one in every if self.filter in (None, one.file.status)}
        ids = [*files] if self.order == "asc" else [*files][::-1]
        shown, more = between(ids, after=self.after, before=self.before, limit=self.limit)
        return VectorStoreFilePage.of([files[one] for one in shown], shown, has_more=more)


PagingDep: TypeAlias = Annotated[FilePaging, Depends()]

router = APIRouter(
    prefix=_PATH, tags=["vector stores"], dependencies=[needs("long-read", ignores_unknown=True)], responses=ERRORS
)


@router.post("", dependencies=[Room], openapi_extra=body_of(VectorStoreCreate))
async def create_vector_store(
    request: Request, vector_stores: VectorStoresDep, principal: PrincipalDep, allowance: AllowanceDep
) -> VectorStore:
    """Create a vector store, with at most 100 uploaded files."""
    asked = await read_ours(request, VectorStoreCreate)
    await allowance.admit()
    tenant, named = principal.tenant, namespace_named(principal, asked.metadata or {}, request.headers)
    owners = () if named is None else (Owner(named, await vector_stores.queue.newest_token()),)
    if asked.file_ids:
        await vector_stores.files.stored().some(tenant, asked.file_ids)
    texts = {"name": asked.name, "description": asked.description, "metadata": asked.metadata}
    clean = asked.model_copy(update=cast("dict[str, object]", await vector_stores.clean(tenant, texts)))
    store_id = await vector_stores.records.create(tenant, clean, owners=owners)
    if asked.file_ids:
        each = [FileAttach(file_id=one, chunking_strategy=asked.chunking_strategy) for one in asked.file_ids]
        await vector_stores.attach(tenant, store_id, each)
    return await vector_stores.records.get(tenant, store_id)


@router.get("", dependencies=[Room])
async def list_vector_stores(
    vector_stores: VectorStoresDep,
    principal: PrincipalDep,
    limit: Limit = 20,
    order: Order = "desc",
    after: Cursor = None,
    before: Cursor = None,
) -> VectorStorePage:
    """List the tenant's vector stores."""
    found, more = await vector_stores.records.page(
        principal.tenant, limit=limit, after=after, before=before, newest_first=order == "desc"
    )
    return VectorStorePage.of(found, [one.id for one in found], has_more=more)


@router.get("/{vector_store_id}")
async def get_vector_store(
    vector_store_id: str, vector_stores: VectorStoresDep, principal: PrincipalDep
) -> VectorStore:
    """Return a vector store."""
    return await vector_stores.records.get(principal.tenant, vector_store_id)


@router.post("/{vector_store_id}", dependencies=[Room], openapi_extra=body_of(VectorStoreUpdate))
async def update_vector_store(
    vector_store_id: str,
    request: Request,
    vector_stores: VectorStoresDep,
    principal: PrincipalDep,
    allowance: AllowanceDep,
) -> VectorStore:
    """Change the name, the metadata or the expiry. The user whose erasure deletes the vector store stays."""
    asked = await read_ours(request, VectorStoreUpdate)
    await allowance.admit()
    texts = asked.model_dump(include={"name", "metadata"} & asked.model_fields_set)
    clean = asked.model_copy(update=cast("dict[str, object]", await vector_stores.clean(principal.tenant, texts)))
    return await vector_stores.records.update(principal.tenant, vector_store_id, clean)


@router.delete("/{vector_store_id}")
async def delete_vector_store(
    vector_store_id: str, vector_stores: VectorStoresDep, principal: PrincipalDep
) -> VectorStoreDeleted:
    """Delete a vector store. Its files stay."""
    await vector_stores.delete(principal.tenant, vector_store_id)
    return VectorStoreDeleted(id=vector_store_id)


@router.post("/{vector_store_id}/search", dependencies=[Room], openapi_extra=body_of(VectorStoreSearch))
async def search_vector_store(
    vector_store_id: str,
    request: Request,
    vector_stores: VectorStoresDep,
    principal: PrincipalDep,
    allowance: AllowanceDep,
) -> SearchPage:
    """Search the files of a vector store by words and meaning."""
    asked = await read_ours(request, VectorStoreSearch)
    await allowance.admit()
    found = await vector_stores.search(principal.tenant, vector_store_id, asked.text, asked)
    return SearchPage(search_query=[asked.query] if isinstance(asked.query, str) else asked.query, data=found)


@router.post("/{vector_store_id}/files", dependencies=[Room], openapi_extra=body_of(FileAttach))
async def attach_file(
    vector_store_id: str,
    request: Request,
    vector_stores: VectorStoresDep,
    principal: PrincipalDep,
    allowance: AllowanceDep,
) -> VectorStoreFile:
    """Add an uploaded file. The worker indexes it."""
    asked = await read_ours(request, FileAttach)
    await allowance.admit()
    return (await vector_stores.attach(principal.tenant, vector_store_id, [asked]))[0]


@router.get("/{vector_store_id}/files", dependencies=[Room])
async def list_vector_store_files(
    vector_store_id: str, vector_stores: VectorStoresDep, principal: PrincipalDep, paging: PagingDep
) -> VectorStoreFilePage:
    """List the files of a vector store."""
    await vector_stores.records.get(principal.tenant, vector_store_id)
    return paging.page(await vector_stores.records.files(principal.tenant, vector_store_id))


@router.get("/{vector_store_id}/files/{file_id}")
async def get_vector_store_file(
    vector_store_id: str, file_id: str, vector_stores: VectorStoresDep, principal: PrincipalDep
) -> VectorStoreFile:
    """Return a file of a vector store."""
    return (await vector_stores.records.file(principal.tenant, vector_store_id, file_id)).file


@router.post("/{vector_store_id}/files/{file_id}", dependencies=[Room], openapi_extra=body_of(FileUpdate))
async def update_vector_store_file(
    vector_store_id: str,
    file_id: str,
    request: Request,
    vector_stores: VectorStoresDep,
    principal: PrincipalDep,
    allowance: AllowanceDep,
) -> VectorStoreFile:
    """Replace a file's attributes."""
    asked = await read_ours(request, FileUpdate)
    await allowance.admit()
    return await vector_stores.update_file(principal.tenant, vector_store_id, file_id, asked.attributes or {})


@router.delete("/{vector_store_id}/files/{file_id}")
async def detach_file(
    vector_store_id: str, file_id: str, vector_stores: VectorStoresDep, principal: PrincipalDep
) -> VectorStoreFileDeleted:
    """Take a file out of a vector store. The file itself stays."""
    await vector_stores.detach(principal.tenant, vector_store_id, file_id)
    return VectorStoreFileDeleted(id=file_id)


@router.post("/{vector_store_id}/file_batches", dependencies=[Room], openapi_extra=body_of(FileBatchCreate))
async def create_file_batch(
    vector_store_id: str,
    request: Request,
    vector_stores: VectorStoresDep,
    principal: PrincipalDep,
    allowance: AllowanceDep,
) -> VectorStoreFileBatch:
    """Add at most 2,000 uploaded files, all or none. The worker indexes them."""
    asked = await read_ours(request, FileBatchCreate)
    await allowance.admit()
    batch_id = f"vsfb_{secrets.token_hex(16)}"
    files = await vector_stores.attach(principal.tenant, vector_store_id, asked.each, batch=batch_id)
    return VectorStoreFileBatch.of(batch_id, files)


@router.get("/{vector_store_id}/file_batches/{batch_id}", dependencies=[Room])
async def get_file_batch(
    vector_store_id: str, batch_id: str, vector_stores: VectorStoresDep, principal: PrincipalDep
) -> VectorStoreFileBatch:
    """Return a file batch. It is gone once all of its files were taken out or added again."""
    found = await vector_stores.records.batch(principal.tenant, vector_store_id, batch_id)
    return VectorStoreFileBatch.of(batch_id, [one.file for one in found])


@router.post("/{vector_store_id}/file_batches/{batch_id}/cancel", dependencies=[Room])
async def cancel_file_batch(
    vector_store_id: str, batch_id: str, vector_stores: VectorStoresDep, principal: PrincipalDep
) -> VectorStoreFileBatch:
    """Stop indexing. Files that are indexed stay; one that is being indexed ends within seconds."""
    await vector_stores.cancel(principal.tenant, vector_store_id, batch_id)
    return await get_file_batch(vector_store_id, batch_id, vector_stores, principal)


@router.get("/{vector_store_id}/file_batches/{batch_id}/files", dependencies=[Room])
async def list_files_of_batch(
    vector_store_id: str,
    batch_id: str,
    vector_stores: VectorStoresDep,
    principal: PrincipalDep,
    paging: PagingDep,
) -> VectorStoreFilePage:
    """List the files of a batch."""
    return paging.page(await vector_stores.records.batch(principal.tenant, vector_store_id, batch_id))
