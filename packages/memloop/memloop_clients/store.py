"""Calls the memory store's HTTP API, one method per route."""

import ssl
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from pydantic import BaseModel

from memloop.ports import Recalled
from memloop.wire.changes import AskNewest, ChangePage, Newest, StoreChanges
from memloop.wire.chat import Json
from memloop.wire.feedback import FeedbackRequest
from memloop.wire.memory import (
    MAX_TOP_K,
    BatchResult,
    Buffer,
    BufferPage,
    Erased,
    ItemPage,
    ItemPatch,
    MemoryDraft,
    MemoryItem,
    Namespace,
    Scope,
    SearchResult,
    StoreAdd,
    StoreAddResult,
    StoreBatch,
    StoreSearch,
)
from memloop.wire.quality import QualityAudit, StoreAudit
from memloop.wire.store_requests import (
    Entities,
    ExportPage,
    History,
    Imported,
    Listing,
    Neighbours,
    RecallResult,
    Similarities,
    StoreExport,
    StoreImport,
    StoreList,
    StoreNeighbours,
    StoreSimilarities,
)
from memloop_clients.balancing.replica import Balancing
from memloop_clients.http import Http, as_raised, segment
from memloop_clients.transport import Timeouts

_TENANT_HEADER = "x-memloop-tenant"
_FENCING_HEADER = "x-fencing-token"
_TIMEOUTS = Timeouts(connect_s=2.0, read_s=30.0, total_s=60.0)


class _Ready(BaseModel):
    warnings: dict[str, str] = {}


class StoreClient(Http):
    """Calls the store. Every method raises the store's own error, or a DependencyError when it cannot answer."""

    def __init__(
        self,
        base_url: str,
        *,
        key: str | None = None,
        timeouts: Timeouts = _TIMEOUTS,
        balancing: Balancing | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            base_url,
            peer="memory store",
            error_of=as_raised("memory store"),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeouts=timeouts,
            balancing=balancing,
            tls=tls,
        )

    async def add(self, request: StoreAdd) -> StoreAddResult:
        """Store drafts, resolved against their neighbours. Raises Conflict on a stale fencing token."""
        return await self._answer(StoreAddResult, "POST", "v1/items", body=request)

    async def add_batch(self, request: StoreBatch) -> BatchResult:
        """Store many adds in one operation; each has an outcome of its own."""
        return await self._answer(BatchResult, "POST", "v1/items/batch", body=request)

    async def search(self, request: StoreSearch) -> SearchResult:
        """Return the best items of a namespace."""
        return await self._answer(SearchResult, "POST", "v1/items/search", body=request)

    async def recall(self, request: StoreSearch) -> RecallResult:
        """Return what a prompt shows of the best items of a namespace."""
        return await self._answer(RecallResult, "POST", "v1/items/search", body=request)

    async def neighbours(self, request: StoreNeighbours) -> Neighbours:
        """Return the live memories near drafts that are not stored yet."""
        return await self._answer(Neighbours, "POST", "v1/items/neighbours", body=request)

    async def similarities(self, request: StoreSimilarities) -> Similarities:
        """Return the cosines of statements with passages by the store's embedding model. Nothing is stored."""
        return await self._answer(Similarities, "POST", "v1/similarities", body=request)

    async def items(self, namespace: Namespace, *, cursor: str | None = None, limit: int = 50) -> ItemPage:
        page = {"limit": str(limit)} | ({"cursor": cursor} if cursor is not None else {})
        return await self._answer(ItemPage, "GET", "v1/items", params=_query(namespace) | page)

    async def listing(self, request: StoreList) -> Listing:
        """Return a page of a tenant's memories, newest first. Raises Unprocessable beyond what a listing reaches."""
        return await self._answer(Listing, "POST", "v1/items/list", body=request)

    async def export(self, request: StoreExport) -> ExportPage:
        """Return a page of a scope's versions as lines."""
        return await self._answer(ExportPage, "POST", "v1/items/export", body=request)

    async def take(self, request: StoreImport) -> Imported:
        """Import lines into a tenant."""
        return await self._answer(Imported, "POST", "v1/items/import", body=request)

    async def entities(self, scope: Scope) -> Entities:
        """Return the users, agents and runs with stored data in the scope."""
        return await self._answer(Entities, "GET", "v1/entities", params=_query(scope))

    async def item(self, item_id: str, *, tenant: str) -> MemoryItem:
        """Return one item. Raises NotFound, also for another tenant's."""
        return await self._answer(MemoryItem, "GET", _item_path(item_id), headers={_TENANT_HEADER: tenant})

    async def patch(self, item_id: str, patch: ItemPatch, *, tenant: str, if_version: int | None = None) -> MemoryItem:
        """Edit an item: a new version. Raises PreconditionFailed when its version is not ``if_version``."""
        body = cast(Json, patch.model_dump(mode="json", exclude_unset=True))
        headers = _of_version(tenant, if_version)
        return await self._answer(MemoryItem, "PATCH", _item_path(item_id), body=body, headers=headers)

    async def delete(self, item_id: str, *, tenant: str, if_version: int | None = None) -> None:
        """Delete an item softly. Raises NotFound, and PreconditionFailed when its version is not ``if_version``."""
        await self.json("DELETE", _item_path(item_id), headers=_of_version(tenant, if_version))

    async def recover(self, item_id: str, *, tenant: str) -> MemoryItem:
        """Undo a soft deletion. Raises NotFound."""
        headers = {_TENANT_HEADER: tenant}
        return await self._answer(MemoryItem, "POST", f"{_item_path(item_id)}/recover", headers=headers)

    async def feedback(self, item_id: str, request: FeedbackRequest, *, tenant: str) -> MemoryItem:
        """Keep a client's verdict on an item. Raises NotFound."""
        path, headers = f"{_item_path(item_id)}/feedback", {_TENANT_HEADER: tenant}
        return await self._answer(MemoryItem, "POST", path, body=request, headers=headers)

    async def audit(self, request: StoreAudit) -> QualityAudit:
        """Return what in a namespace is suspect."""
        return await self._answer(QualityAudit, "POST", "v1/items/audit", body=request)

    async def history(self, item_id: str, *, tenant: str) -> History:
        """Return all versions of an item, oldest first."""
        path = f"{_item_path(item_id)}/history"
        return await self._answer(History, "GET", path, headers={_TENANT_HEADER: tenant})

    async def erase(self, namespace: Namespace, *, fencing_token: int | None = None) -> Erased:
        """Delete everything of a namespace. Raises Conflict on a stale fencing token."""
        headers = _fenced(fencing_token)
        return await self._answer(Erased, "DELETE", "v1/namespaces", params=_query(namespace), headers=headers)

    async def would_erase(self, namespace: Namespace) -> Erased:
        """Count what an erasure would delete, and delete nothing."""
        params = _query(namespace) | {"dry_run": "true"}
        return await self._answer(Erased, "DELETE", "v1/namespaces", params=params)

    async def buffers(self, tenant: str, *, user_id: str | None = None) -> BufferPage:
        params = {"tenant": tenant} | ({"user_id": user_id} if user_id is not None else {})
        return await self._answer(BufferPage, "GET", "v1/buffers", params=params)

    async def idle_buffers(self, before: datetime, *, limit: int = 100) -> BufferPage:
        """Return buffers of all tenants unchanged since ``before`` (aware), oldest first."""
        params = {"before": before.isoformat(), "limit": str(limit)}
        return await self._answer(BufferPage, "GET", "v1/buffers/idle", params=params)

    async def put_buffer(self, buffer: Buffer, *, fencing_token: int | None = None) -> Buffer:
        """Replace a namespace's buffer. Raises Conflict on a stale fencing token."""
        headers = _fenced(fencing_token)
        return await self._answer(Buffer, "PUT", "v1/buffers", body=buffer, headers=headers)

    async def clear_buffer(self, namespace: Namespace, *, fencing_token: int | None = None) -> None:
        """Delete a namespace's buffer, if there is one. Raises Conflict on a stale fencing token."""
        headers = _fenced(fencing_token)
        await self.json("DELETE", "v1/buffers", params=_query(namespace), headers=headers)

    async def changes(self, asked: StoreChanges) -> ChangePage:
        """Return a page of the feed. Raises Gone for a cursor after which changes were cut off."""
        return await self._answer(ChangePage, "POST", "v1/changes", body=asked)

    async def newest_changes(self, tenants: Sequence[str]) -> Mapping[str, str]:
        """Return the place of each tenant's newest change."""
        asked = AskNewest(tenants=tuple(tenants))
        return (await self._answer(Newest, "POST", "v1/changes/newest", body=asked)).cursors

    async def check(self) -> None:
        """Raise unless the store is ready: a readiness check."""
        await self.json("GET", "readyz")

    async def warning(self) -> str | None:
        """Return what the store's readiness warns of, such as a full disk."""
        ready = await self._answer(_Ready, "GET", "readyz")
        return " ".join(ready.warnings.values()) or None


class NamespaceIndex:
    """A MemoryIndex over the store, bound to one namespace.

    ``hidden`` memories are not found: a writer that decides on them again must not take them as known.
    """

    def __init__(self, store: StoreClient, namespace: Namespace, *, hidden: frozenset[str] = frozenset()) -> None:
        self._store = store
        self._namespace = namespace
        self._hidden = hidden

    async def search(self, query: str, *, top_k: int) -> Sequence[Recalled]:
        """Return the best memories that are valid now, without raw turns."""
        asked = StoreSearch(namespace=self._namespace, query=query, top_k=min(top_k + len(self._hidden), MAX_TOP_K))
        shown = [hit.item for hit in (await self._store.search(asked)).results if hit.item.id not in self._hidden]
        return [Recalled(item.id, item.memory, item.valid_from, item.key) for item in shown[:top_k]]

    async def near(self, drafts: Sequence[MemoryDraft]) -> Sequence[Sequence[MemoryItem]]:
        """Return the nearest live memories of each draft, best first, without those of its own key and type."""
        request = StoreNeighbours(namespace=self._namespace, drafts=tuple(drafts))
        return (await self._store.neighbours(request)).neighbours


def _query(scope: Scope) -> dict[str, str]:
    return cast(dict[str, str], scope.model_dump(exclude_none=True))


def _of_version(tenant: str, version: int | None) -> dict[str, str]:
    return {_TENANT_HEADER: tenant} | ({"If-Match": str(version)} if version is not None else {})


def _fenced(token: int | None) -> dict[str, str]:
    return {} if token is None else {_FENCING_HEADER: str(token)}


def _item_path(item_id: str) -> str:
    return f"v1/items/{segment(item_id)}"
