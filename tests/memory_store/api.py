"""The store's HTTP API in the words of its tests; every call goes through the routes."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx
from pydantic import JsonValue

from memloop.wire.memory import (
    Erased,
    ItemPage,
    MemoryDraft,
    MemoryItem,
    MemoryType,
    Namespace,
    SearchHit,
    SearchResult,
    StoreAdd,
    StoreAddResult,
    StoreSearch,
    Written,
)
from memloop.wire.store_requests import History, ItemVersion

ALICE = Namespace(tenant="t1", user_id="alice")


def day(number: int) -> datetime:
    """A day of January 2026."""
    return datetime(2026, 1, number, tzinfo=UTC)


@dataclass
class StoreApi:
    """Calls that must succeed; ``http`` is there for those that must not."""

    http: httpx.AsyncClient
    namespace: Namespace = field(default=ALICE)

    async def add_all(self, *drafts: MemoryDraft, **fields: object) -> list[Written]:
        """Add drafts; fields are those of ``StoreAdd``."""
        request = StoreAdd.model_validate({"namespace": self.namespace, "drafts": drafts, **fields})
        response = await self.http.post("/v1/items", content=request.model_dump_json())
        assert response.status_code == 200, response.text
        return list(StoreAddResult.model_validate_json(response.content).results)

    async def add(self, key: str, value: str, *, kind: MemoryType = "LongTermMemory", **fields: object) -> Written:
        """Add one fact."""
        [written] = await self.add_all(MemoryDraft(key=key, value=value, memory_type=kind), **fields)
        return written

    async def search(self, query: str, **fields: object) -> list[SearchHit]:
        """Search; fields are those of ``StoreSearch``."""
        request = StoreSearch.model_validate({"namespace": self.namespace, "query": query, **fields})
        response = await self.http.post("/v1/items/search", content=request.model_dump_json())
        assert response.status_code == 200, response.text
        return list(SearchResult.model_validate_json(response.content).results)

    async def found(self, query: str, **fields: object) -> list[str]:
        """The texts that a search finds."""
        return [hit.item.memory for hit in await self.search(query, **fields)]

    async def item(self, item_id: str) -> MemoryItem:
        """One item."""
        response = await self.http.get(f"/v1/items/{item_id}", headers=self.tenant)
        assert response.status_code == 200, response.text
        return MemoryItem.model_validate_json(response.content)

    async def history(self, item_id: str) -> list[ItemVersion]:
        """The versions of an item's fact."""
        response = await self.http.get(f"/v1/items/{item_id}/history", headers=self.tenant)
        assert response.status_code == 200, response.text
        return list(History.model_validate_json(response.content).versions)

    async def patch(self, item_id: str, fields: dict[str, JsonValue], **headers: str) -> MemoryItem:
        """Edit an item."""
        response = await self.http.patch(f"/v1/items/{item_id}", json=fields, headers={**self.tenant, **headers})
        assert response.status_code == 200, response.text
        return MemoryItem.model_validate_json(response.content)

    async def delete(self, item_id: str) -> None:
        """Delete an item."""
        response = await self.http.delete(f"/v1/items/{item_id}", headers=self.tenant)
        assert response.status_code == 204, response.text

    async def recover(self, item_id: str) -> MemoryItem:
        """Take a deletion back."""
        response = await self.http.post(f"/v1/items/{item_id}/recover", headers=self.tenant)
        assert response.status_code == 200, response.text
        return MemoryItem.model_validate_json(response.content)

    async def judge(self, item_id: str, verdict: str | None, *, reason: str | None = None) -> MemoryItem:
        """Give feedback on an item; None takes it back."""
        body = {"feedback": verdict, "reason": reason}
        response = await self.http.post(f"/v1/items/{item_id}/feedback", json=body, headers=self.tenant)
        assert response.status_code == 200, response.text
        return MemoryItem.model_validate_json(response.content)

    async def page(self, **params: str | int) -> ItemPage:
        """A page of the namespace's items."""
        response = await self.http.get("/v1/items", params={**self.owner, **params})
        assert response.status_code == 200, response.text
        return ItemPage.model_validate_json(response.content)

    async def erase(self) -> Erased:
        """Erase the namespace."""
        response = await self.http.delete("/v1/namespaces", params=self.owner)
        assert response.status_code == 200, response.text
        return Erased.model_validate_json(response.content)

    def of(self, **ids: str | None) -> "StoreApi":
        """The same store for another namespace."""
        return StoreApi(self.http, self.namespace.model_copy(update=ids))

    @property
    def tenant(self) -> dict[str, str]:
        """The header of by-id routes."""
        return {"x-memloop-tenant": self.namespace.tenant}

    @property
    def owner(self) -> dict[str, str]:
        """The namespace as query parameters."""
        fields = self.namespace
        ids = {"agent_id": fields.agent_id, "run_id": fields.run_id}
        known = {name: value for name, value in ids.items() if value is not None}
        return {"tenant": fields.tenant, "user_id": fields.user_id, **known}
