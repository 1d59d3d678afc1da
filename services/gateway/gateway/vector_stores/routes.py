"""``/v1/vector_stores``: uploaded files that ``file_search`` searches, as OpenAI's API has them.

The worker cuts the files into chunks (docs/decisions/0082-vector-stores-in-the-memory-store.md).
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, cast

from fastapi import APIRouter, Depends, Query

from gateway.access import Asking, AskingDep, PrincipalDep, Room, namespace_named, needs
from gateway.vector_stores.records import Attached, VectorStoreRecords
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
from memloop.wire.errors import NotFound
from memloop_service import ERRORS
from memloop_service.http import body_of
from memloop_state.owners import Owner

_PATH: Final = "/v1/vector_stores"
Cursor: TypeAlias = Annotated[str | None, Query(max_length=64)]


@dataclass(frozen=True, slots=True)
class Paging:
    """The query of a list."""

    limit: Annotated[int, Query(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] = "desc"
    after: Cursor = None
    before: Cursor = None

    def between(self, oldest_first: Sequence[str]) -> tuple[Sequence[str], bool]:
        """Return the ids behind ``after`` and in front of ``before``, and whether there are more. Raises NotFound."""
        ids = oldest_first if self.order == "asc" else oldest_first[::-1]
        for name, one in (("after", self.after), ("before", self.before)):
            if one is not None and one not in ids:
                raise NotFound("There is no such id to continue from.", param=name)
        start = 0 if self.after is None else ids.index(self.after) + 1
        end = len(ids) if self.before is None else ids.index(self.before)
        rest = ids[start:end]
        is_last = self.before is not None and self.after is None  # the page that ends there
        return rest[-self.limit :] if is_last else rest[: self.limit], len(rest) > self.limit


@dataclass(frozen=True, slots=True)
class FilePaging(Paging):
    """The query of a list of files."""

    filter: FileStatus | None = None

    def page(self, oldest_first: Sequence[Attached]) -> VectorStoreFilePage:
        """Return the page of these files. Raises NotFound for an unknown id."""
        files = {one.file.id: one.file for one in oldest_first if self.filter in (None, one.file.status)}
        shown, more = self.between([*files])
        return VectorStoreFilePage.of([files[one] for one in shown], shown, has_more=more)


FilePagingDep: TypeAlias = Annotated[FilePaging, Depends()]


@dataclass(frozen=True, slots=True)
class StoreAt(Asking):
    """The vector store of a request's path."""

    vector_store_id: str
    vector_stores: VectorStoresDep

    @property
    def place(self) -> tuple[str, str]:
        """The tenant and the id."""
        return self.tenant, self.vector_store_id

    @property
    def records(self) -> VectorStoreRecords:
        """The records of vector stores."""
        return self.vector_stores.records


StoreDep: TypeAlias = Annotated[StoreAt, Depends()]

router = APIRouter(
    prefix=_PATH, tags=["vector stores"], dependencies=[needs("long-read", ignores_unknown=True)], responses=ERRORS
)


@router.post("", dependencies=[Room], openapi_extra=body_of(VectorStoreCreate))
async def create_vector_store(asking: AskingDep, vector_stores: VectorStoresDep) -> VectorStore:
    """Create a vector store, with at most 100 uploaded files."""
    asked, tenant = await asking.body(VectorStoreCreate), asking.tenant
    named = namespace_named(asking.principal, asked.metadata or {}, asking.request.headers)
    owners = () if named is None else (Owner(named, await vector_stores.queue.newest_token()),)
    if asked.file_ids:
        await vector_stores.files.stored().some(tenant, asked.file_ids)
    texts = {"name": asked.name, "description": asked.description, "metadata": asked.metadata}
    clean = asked.model_copy(update=cast("dict[str, object]", await vector_stores.clean(tenant, texts)))
    return await vector_stores.create(tenant, clean, owners=owners)


@router.get("", dependencies=[Room])
async def list_vector_stores(
    vector_stores: VectorStoresDep, principal: PrincipalDep, paging: Annotated[Paging, Depends()]
) -> VectorStorePage:
    """List the tenant's vector stores."""
    shown, more = paging.between(await vector_stores.records.table.ids(principal.tenant))
    found = await vector_stores.records.some(principal.tenant, shown)
    return VectorStorePage.of(found, [one.id for one in found], has_more=more)


@router.get("/{vector_store_id}")
async def get_vector_store(store: StoreDep) -> VectorStore:
    """Return a vector store."""
    return await store.records.get(*store.place)


@router.post("/{vector_store_id}", dependencies=[Room], openapi_extra=body_of(VectorStoreUpdate))
async def update_vector_store(store: StoreDep) -> VectorStore:
    """Change the name, the metadata or the expiry. The user whose erasure deletes the vector store stays."""
    asked, tenant = await store.body(VectorStoreUpdate), store.tenant
    texts = asked.model_dump(include={"name", "metadata"} & asked.model_fields_set)
    clean = asked.model_copy(update=cast("dict[str, object]", await store.vector_stores.clean(tenant, texts)))
    return await store.records.update(*store.place, clean)


@router.delete("/{vector_store_id}")
async def delete_vector_store(store: StoreDep) -> VectorStoreDeleted:
    """Delete a vector store. Its files stay."""
    await store.vector_stores.delete(*store.place)
    return VectorStoreDeleted(id=store.vector_store_id)


@router.post("/{vector_store_id}/search", dependencies=[Room], openapi_extra=body_of(VectorStoreSearch))
async def search_vector_store(store: StoreDep) -> SearchPage:
    """Search the files of a vector store by words and meaning."""
    asked = await store.body(VectorStoreSearch)
    found = await store.vector_stores.search(*store.place, asked.text, asked)
    return SearchPage(search_query=[asked.query] if isinstance(asked.query, str) else asked.query, data=found)


@router.post("/{vector_store_id}/files", dependencies=[Room], openapi_extra=body_of(FileAttach))
async def attach_file(store: StoreDep) -> VectorStoreFile:
    """Add an uploaded file. The worker indexes it."""
    asked = await store.body(FileAttach)
    return (await store.vector_stores.attach(*store.place, [asked]))[0]


@router.get("/{vector_store_id}/files", dependencies=[Room])
async def list_vector_store_files(store: StoreDep, paging: FilePagingDep) -> VectorStoreFilePage:
    """List the files of a vector store."""
    await store.records.get(*store.place)
    return paging.page(await store.records.files(*store.place))


@router.get("/{vector_store_id}/files/{file_id}")
async def get_vector_store_file(store: StoreDep, file_id: str) -> VectorStoreFile:
    """Return a file of a vector store."""
    return (await store.records.file(*store.place, file_id)).file


@router.post("/{vector_store_id}/files/{file_id}", dependencies=[Room], openapi_extra=body_of(FileUpdate))
async def update_vector_store_file(store: StoreDep, file_id: str) -> VectorStoreFile:
    """Replace a file's attributes."""
    asked = await store.body(FileUpdate)
    return await store.vector_stores.update_file(*store.place, file_id, asked.attributes or {})


@router.delete("/{vector_store_id}/files/{file_id}")
async def detach_file(store: StoreDep, file_id: str) -> VectorStoreFileDeleted:
    """Take a file out of a vector store. The file itself stays."""
    await store.vector_stores.detach(*store.place, file_id)
    return VectorStoreFileDeleted(id=file_id)


@router.post("/{vector_store_id}/file_batches", dependencies=[Room], openapi_extra=body_of(FileBatchCreate))
async def create_file_batch(store: StoreDep) -> VectorStoreFileBatch:
    """Add at most 2,000 uploaded files, all or none. The worker indexes them."""
    asked, batch_id = await store.body(FileBatchCreate), f"vsfb_{secrets.token_hex(16)}"
    files = await store.vector_stores.attach(*store.place, asked.each, batch=batch_id)
    return VectorStoreFileBatch.of(batch_id, files)


@router.get("/{vector_store_id}/file_batches/{batch_id}", dependencies=[Room])
async def get_file_batch(store: StoreDep, batch_id: str) -> VectorStoreFileBatch:
    """Return a file batch. It is gone once all of its files were taken out or added again."""
    found = await store.records.batch(*store.place, batch_id)
    return VectorStoreFileBatch.of(batch_id, [one.file for one in found])


@router.post("/{vector_store_id}/file_batches/{batch_id}/cancel", dependencies=[Room])
async def cancel_file_batch(store: StoreDep, batch_id: str) -> VectorStoreFileBatch:
    """Stop indexing. Files that are indexed stay; one that is being indexed ends within seconds."""
    await store.vector_stores.cancel(*store.place, batch_id)
    return await get_file_batch(store, batch_id)


@router.get("/{vector_store_id}/file_batches/{batch_id}/files", dependencies=[Room])
async def list_files_of_batch(store: StoreDep, batch_id: str, paging: FilePagingDep) -> VectorStoreFilePage:
    """List the files of a batch."""
    return paging.page(await store.records.batch(*store.place, batch_id))
