"""A memory store on a real port, as small as its contract allows: idempotent adds, fenced lanes, buffers.

It can hold a request before or after it took effect, so that a test can kill a client exactly there.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from aiohttp import web
from pydantic import BaseModel

from memloop.wire.errors import ErrorBody, ErrorEnvelope
from memloop.wire.memory import (
    BatchOutcome,
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
    SearchHit,
    SearchResult,
    StoreAdd,
    StoreAddResult,
    StoreBatch,
    StoreSearch,
    Written,
)
from memloop.wire.store_requests import History, ItemVersion, Neighbours, StoreNeighbours
from tests.fakes.web_server import serving

Moment = Literal["before", "after"]
_Next: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Hold:
    """Stops the first request that ``matches``, before or after it took effect."""

    matches: Callable[[str, str, str], bool]
    moment: Moment
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    used: bool = False


@dataclass
class StoreServer:
    """The store's state, open to tests. ``down`` answers 503 to everything, the others their status to some adds."""

    url: str = ""
    down: bool = False
    refuse_adds: int | None = None
    refuse_memories: int | None = None
    items: dict[str, tuple[Namespace, MemoryItem]] = field(default_factory=dict[str, tuple[Namespace, MemoryItem]])
    buffers: dict[Namespace, Buffer] = field(default_factory=dict[Namespace, Buffer])
    adds: list[StoreAdd] = field(default_factory=list[StoreAdd])
    writes: list[str] = field(default_factory=list[str])
    hold: Hold | None = None
    _answers: dict[str, StoreAddResult] = field(default_factory=dict[str, StoreAddResult])
    _newest: dict[str, int] = field(default_factory=dict[str, int])

    def texts(self, memory_type: str | None = None) -> list[str]:
        """The stored texts, oldest first; raw turns only when asked for."""
        items = [item for _, item in self.items.values()]
        if memory_type is not None:
            return [item.memory for item in items if item.memory_type == memory_type]
        return [item.memory for item in items if item.memory_type != "RawTurn"]

    def buffered(self) -> list[str]:
        """The buffered texts."""
        return [turn.content for buffer in self.buffers.values() for turn in buffer.turns]

    async def add(self, request: web.Request) -> web.Response:
        add = StoreAdd.model_validate_json(await request.read())
        if self.refuse_adds is not None:
            return _error(self.refuse_adds, "scripted")
        if self.refuse_memories is not None and any(draft.memory_type != "RawTurn" for draft in add.drafts):
            return _error(self.refuse_memories, "scripted")
        lane, token = add.namespace.lane(), add.fencing_token or 0
        if token < self._newest.get(lane, 0):
            return _error(409, "stale fencing token")
        self._newest[lane] = token
        self.adds.append(add)
        key = f"{lane}:{add.event_id}"
        if add.event_id is None or key not in self._answers:
            self._answers[key] = StoreAddResult(results=tuple(self._write(add, draft) for draft in add.drafts))
        return _json(self._answers[key])

    async def add_batch(self, request: web.Request) -> web.Response:
        batch = StoreBatch.model_validate_json(await request.read())
        self.adds.extend(batch.adds)
        written = (tuple(self._write(add, draft) for draft in add.drafts) for add in batch.adds)
        return _json(BatchResult(results=tuple(BatchOutcome(memories=memories) for memories in written)))

    def _write(self, add: StoreAdd, draft: MemoryDraft) -> Written:
        digest = hashlib.sha256(draft.value.encode()).hexdigest()
        item_id = hashlib.sha256(f"{add.namespace}{draft.key}{digest}".encode()).hexdigest()[:32]
        now = datetime.now(UTC)
        known = item_id in self.items
        namespace = add.namespace
        item = MemoryItem(
            id=item_id,
            memory=draft.value,
            key=draft.key,
            memory_type=draft.memory_type,
            tags=draft.tags,
            user_id=namespace.user_id,
            agent_id=namespace.agent_id,
            run_id=namespace.run_id,
            metadata=add.metadata,
            valid_from=add.timestamp or now,
            created_at=now,
            updated_at=now,
            expires_at=add.expires_at,
            sources=(draft.source,) if draft.source else add.sources,
            hash=digest,
        )
        self.items[item_id] = (namespace, item)
        self.writes.append(draft.value)
        return Written(outcome="touched" if known else "inserted", item=item)

    async def neighbours(self, request: web.Request) -> web.Response:
        asked = StoreNeighbours.model_validate_json(await request.read())
        return _json(Neighbours(neighbours=tuple(() for _ in asked.drafts)))

    async def search(self, request: web.Request) -> web.Response:
        search = StoreSearch.model_validate_json(await request.read())
        found = [
            SearchHit(item=item, score=1.0)
            for namespace, item in self.items.values()
            if _inside(namespace, search.namespace) and item.memory_type != "RawTurn"
        ]
        return _json(SearchResult(results=tuple(found[: search.top_k])))

    async def page(self, request: web.Request) -> web.Response:
        wanted = _namespace(request)
        found = tuple(item for namespace, item in self.items.values() if _inside(namespace, wanted))
        return _json(ItemPage(items=found[: int(request.query["limit"])]))

    async def item(self, request: web.Request) -> web.Response:
        namespace, item = self.items.get(request.match_info["id"], (None, None))
        if namespace is None or item is None or namespace.tenant != request.headers["x-memloop-tenant"]:
            return _error(404, "there is no such memory")
        if request.path.endswith("/history"):
            return _json(History(versions=(ItemVersion(**dict(item)),)))
        if request.method == "DELETE":
            if request.headers.get("If-Match") not in (None, str(item.version)):
                return _error(412, "another version")
            del self.items[item.id]
            return web.Response(status=204)
        if request.method == "PATCH":
            return self._patched(namespace, item, ItemPatch.model_validate_json(await request.read()), request)
        return _json(item)

    def _patched(self, namespace: Namespace, item: MemoryItem, patch: ItemPatch, request: web.Request) -> web.Response:
        if request.headers.get("If-Match") not in (None, str(item.version)):
            return _error(412, "another version")
        changed = item.model_copy(update={"memory": patch.memory or item.memory, "version": item.version + 1})
        self.items[item.id] = (namespace, changed)
        return _json(changed)

    async def erase(self, request: web.Request) -> web.Response:
        wanted = _namespace(request)
        doomed = [item_id for item_id, (namespace, _) in self.items.items() if _inside(namespace, wanted)]
        buffers = [namespace for namespace in self.buffers if _inside(namespace, wanted)]
        if request.query.get("dry_run") == "true":
            return _json(Erased(vectors=len(doomed), buffers=len(buffers), dry_run=True))
        for item_id in doomed:
            del self.items[item_id]
        for namespace in buffers:
            del self.buffers[namespace]
        return _json(Erased(vectors=len(doomed), buffers=len(buffers)))

    async def list_buffers(self, request: web.Request) -> web.Response:
        tenant, user_id = request.query["tenant"], request.query.get("user_id")
        found = [
            buffer
            for namespace, buffer in self.buffers.items()
            if namespace.tenant == tenant and user_id in (None, namespace.user_id)
        ]
        return _json(BufferPage(buffers=tuple(found)))

    async def idle_buffers(self, request: web.Request) -> web.Response:
        before = datetime.fromisoformat(request.query["before"])
        idle = [buffer for buffer in self.buffers.values() if (buffer.updated_at or before) < before]
        return _json(BufferPage(buffers=tuple(idle[: int(request.query["limit"])])))

    async def put_buffer(self, request: web.Request) -> web.Response:
        buffer = Buffer.model_validate_json(await request.read())
        buffer = buffer.model_copy(update={"updated_at": datetime.now(UTC)})
        self.buffers[buffer.namespace] = buffer
        return _json(buffer)

    async def clear_buffer(self, request: web.Request) -> web.Response:
        self.buffers.pop(_namespace(request), None)
        return web.Response(status=204)

    async def ready(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"status": "ok"})

    @web.middleware
    async def gate(self, request: web.Request, handler: _Next) -> web.StreamResponse:
        if self.down:
            return _error(503, "scripted outage")
        hold = self.hold
        held = hold is not None and not hold.used and hold.matches(request.method, request.path, await request.text())
        if hold is None or not held:
            return await handler(request)
        hold.used = True
        if hold.moment == "before":
            await _stop_at(hold)
        response = await handler(request)
        if hold.moment == "after":
            await _stop_at(hold)
        return response


@asynccontextmanager
async def store_server() -> AsyncGenerator[StoreServer]:
    """A running, empty store."""
    store = StoreServer()
    routes = [
        web.post("/v1/items", store.add),
        web.post("/v1/items/batch", store.add_batch),
        web.post("/v1/items/neighbours", store.neighbours),
        web.post("/v1/items/search", store.search),
        web.get("/v1/items", store.page),
        web.route("*", "/v1/items/{id}", store.item),
        web.get("/v1/items/{id}/history", store.item),
        web.delete("/v1/namespaces", store.erase),
        web.get("/v1/buffers", store.list_buffers),
        web.get("/v1/buffers/idle", store.idle_buffers),
        web.put("/v1/buffers", store.put_buffer),
        web.delete("/v1/buffers", store.clear_buffer),
        web.get("/readyz", store.ready),
    ]
    async with serving(routes, middlewares=[store.gate], max_body_bytes=1 << 30) as store.url:
        try:
            yield store
        finally:
            if store.hold is not None:
                store.hold.let_go.set()


async def _stop_at(hold: Hold) -> None:
    hold.reached.set()
    await hold.let_go.wait()


def _namespace(request: web.Request) -> Namespace:
    names = ("tenant", "user_id", "agent_id", "run_id")
    return Namespace.model_validate({name: request.query[name] for name in names if name in request.query})


def _inside(namespace: Namespace, wanted: Scope) -> bool:
    return (
        namespace.tenant == wanted.tenant
        and wanted.user_id in (None, namespace.user_id)
        and wanted.agent_id in (None, namespace.agent_id)
        and wanted.run_id in (None, namespace.run_id)
    )


def _json(model: BaseModel) -> web.Response:
    return web.json_response(text=model.model_dump_json())


def _error(status: int, message: str) -> web.Response:
    body = ErrorEnvelope(error=ErrorBody(message=message, type="api_error"))
    return web.json_response(text=body.model_dump_json(), status=status)
