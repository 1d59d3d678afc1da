"""Two tenants at one gateway on the real store: everything that A owns, and B who names the same user and A's ids."""

import re
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI
from starlette.routing import Route

from gateway.settings import WorkerSettings
from gateway.worker import working
from memloop.wire.memory import Buffer, Namespace, Source
from tests.fakes.job_engine import EngineServer, engine_server
from tests.fakes.real_store import real_store
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, OPERATED, OPERATOR_KEY
from tests.gateway.file_uploads import processed, upload
from tests.gateway.long_reads import asked, reader
from tests.gateway.rig import eventually, settings_for
from tests.gateway.running import Answer, Gateway, running_gateway

CANARY = "canary-4711"
"""Stands in every text that A owns."""
_LAST_USED = re.compile(rb'"last_used_at":(?:null|\d+),')
_TRICKS = {"X-Memloop-Tenant": "a", "X-Tenant": "a", "X-Memory-User-Id": "alice"}
_A_OWNS = (
    "/v1/memory?user_id=alice",
    "/v1/memory/{item}",
    "/v1/memory/{item}/history",
    "/v1/memory/events?user_id=alice",
    "/v1/memory/events/{event}",
    "/v1/memory/events/{waiting_event}",
    "/v1/memory/buffers",
    "/v1/long-read",
    "/v1/long-read/{read}",
    "/v1/long-read/{waiting_read}",
    "/v1/long-read/{read}?stream=true",
    "/v1/admin/keys",
    "/v1/admin/audit",
    "/v1/admin/audit?kind=denied",
    "/v1/admin/trace-settings",
    "/v1/files",
    "/v1/files/{file}",
    "/v1/files/{file}/content",
    "/v1/files/{file}/content?form=text",
    "/v1/responses/{response}",
    "/v1/responses/{response}/input_items",
    "/v1/responses/{waiting_response}",
    "/v1/responses/{waiting_response}/input_items",
    "/v1/conversations/{conversation}",
    "/v1/conversations/{conversation}/items",
    "/v1/conversations/{conversation}/items/{conversation_item}",
    "/v1/vector_stores",
    "/v1/vector_stores/{vector_store}",
    "/v1/vector_stores/{vector_store}/files",
    "/v1/vector_stores/{vector_store}/files/{file}",
    "/v1/vector_stores/{vector_store}/file_batches/{file_batch}",
)


def routes_of(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Every (method, path template) that the app's router answers; HEAD goes with GET."""
    for route in app.routes:
        assert isinstance(route, Route), f"{route!r} is of a kind that the matrix does not know"
        yield from ((method, route.path) for method in route.methods or () if method != "HEAD")


@dataclass(frozen=True)
class Attempt:
    """What B sends; ``{item}`` and the like stand for A's ids. ``shows`` judges what B may see."""

    path: str
    body: object = None
    status: int = 404
    shows: Callable[[Any], bool] = lambda body: set(body) == {"error"}


@dataclass(frozen=True)
class World:
    """A running gateway in which A owns one of each thing."""

    gateway: Gateway
    engine: EngineServer
    settings: WorkerSettings
    ids: Mapping[str, str]
    admins: Mapping[str, str]
    """A key with the scope ``admin`` alone, for A and for B."""
    b_key: str = BOB_KEY
    """B's other key."""

    async def call(self, key: str, method: str, path: str, body: object = None, **headers: str) -> Answer:
        raw = None if body is None else orjson.dumps(body)
        sent = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **headers}
        async with self.gateway.http.request(method, self.gateway.url + path, data=raw, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def another_b(self) -> "World":
        """The same world with another tenant as B, who owns nothing; the engine's calls so far are forgotten."""
        tenant = f"b-{secrets.token_hex(4)}"
        own, admin = [await _made_key(self, tenant=tenant, **fields) for fields in ({}, {"scopes": ["admin"]})]
        self.engine.calls.clear()
        return replace(self, b_key=own["secret"], admins={**self.admins, "b": admin["secret"]})

    async def attempt(self, method: str, attempt: Attempt) -> Answer:
        """B's try, with every way we know to claim to be A."""
        path = attempt.path.format_map(self.ids)
        body = attempt.body
        if body is not None:
            text = orjson.dumps(body).decode()
            for name, value in self.ids.items():
                text = text.replace(f"{{{name}}}", value)
            body = orjson.loads(text)
        key, claimed = self._key("b", path), path + ("&" if "?" in path else "?") + "tenant=a"
        answer = await self.call(key, method, claimed, body, **_TRICKS)
        if answer.status != 400 or answer.json["error"]["param"] != "tenant":
            return answer
        return await self.call(key, method, path, body, **_TRICKS)

    async def what_a_owns(self) -> dict[str, bytes]:
        """What A's own key sees on every route that shows something of A, but for when a key was last used: by this."""
        paths = [path.format_map(self.ids) for path in _A_OWNS]
        seen = {path: await self.call(self._key("a", path), "GET", path) for path in paths}
        assert {path: answer.status for path, answer in seen.items()} == dict.fromkeys(paths, 200)
        return {path: _LAST_USED.sub(b"", answer.raw) for path, answer in seen.items()}

    def _key(self, tenant: str, path: str) -> str:
        keys = self.admins if path.startswith("/v1/admin") else {"a": ALICE_KEY, "b": self.b_key}
        return keys[tenant]

    def engine_was_told(self) -> bytes:
        """All that the engine has seen."""
        return orjson.dumps(self.engine.calls)


@asynccontextmanager
async def two_tenants(redis_url: str, folder: Path) -> AsyncGenerator[World]:
    """A's things are made through the API and its worker; the worker is gone again, so that two jobs wait."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(engine_server(reader))
        store = await stack.enter_async_context(real_store(redis_url, folder))
        settings = settings_for(
            redis_url,
            engine_url=engine.url,
            store_url=store,
            api_keys=OPERATED,
            sync_wait_s=30.0,
            stop_wait_s=0.0,
            storage_url=(folder / "objects").as_uri(),
        )
        gateway = await stack.enter_async_context(running_gateway(settings))
        world = World(gateway, engine, settings, ids={}, admins={})
        ids = await _everything_of_a(world)
        admins = {tenant: await _made_key(world, tenant=tenant, scopes=["admin"]) for tenant in ("a", "b")}
        engine.calls.clear()
        key = await _made_key(world, tenant="a")
        yield World(gateway, engine, settings, ids | {"key": key["id"]}, {t: a["secret"] for t, a in admins.items()})


async def _made_key(world: World, **fields: object) -> Any:
    answer = await world.call(OPERATOR_KEY, "POST", "/v1/admin/keys", {"name": f"of {CANARY}", **fields})
    assert answer.status == 201, answer.raw
    return answer.json


async def _everything_of_a(world: World) -> dict[str, str]:
    async def post(path: str, body: object) -> Any:
        answer = await world.call(ALICE_KEY, "POST", path, body)
        assert answer.status in (200, 202), answer.raw
        return answer.json

    def said(text: str, **fields: object) -> object:
        return {"messages": [{"role": "user", "content": text}], "user_id": "alice", **fields}

    switched = await world.call(OPERATOR_KEY, "PUT", "/v1/admin/trace-settings", {"enabled": True, "tenant": "a"})
    assert switched.status == 200, switched.raw
    async with working(world.gateway.work, world.settings):
        event = await post("/v1/memory/add", said(f"Tea at five. {CANARY}", infer=False))
        await post("/v1/memory/add", said(f"Coffee at six. {CANARY}", infer=False))
        file = await upload(world.gateway, f"A file. {CANARY}".encode(), key=ALICE_KEY)
        await processed(world.gateway, file["id"], key=ALICE_KEY)
        searched = await post("/v1/vector_stores", {"name": CANARY})
        batch = await post(f"/v1/vector_stores/{searched['id']}/file_batches", {"file_ids": [file["id"]]})
        await _indexed(world, searched["id"])
    item = event["memories"][0]["item"]["id"]
    namespace = Namespace(tenant="a", user_id="alice")
    turn = Source(role="user", content=f"half a thought {CANARY}")
    await world.gateway.memory.store.put_buffer(Buffer(namespace=namespace, turns=(turn,)))
    question = f"Where? {CANARY}"
    read = await post("/v1/long-read", asked(question=question))
    waiting_read = await post("/v1/long-read", asked(question=question, background=True))
    waiting_event = await post("/v1/memory/add", said(f"Later. {CANARY}"))
    response = await post("/v1/responses", {"model": "m", "input": f"Tea? {CANARY}", "user": "alice"})
    later = {"model": "m", "input": f"Tea? {CANARY}", "user": "alice", "background": True}
    waiting_response = await post("/v1/responses", later)
    said_before = [{"role": "user", "content": f"Tea? {CANARY}"}]
    conversation = await post("/v1/conversations", {"items": said_before, "metadata": {"user_id": "alice"}})
    items = await world.call(ALICE_KEY, "GET", f"/v1/conversations/{conversation['id']}/items")
    page = await world.call(ALICE_KEY, "GET", "/v1/memory?user_id=alice&limit=1")
    return {
        "item": item,
        "event": event["event_id"],
        "file": file["id"],
        "read": read["id"],
        "waiting_read": waiting_read["id"],
        "waiting_event": waiting_event["event_id"],
        "response": response["id"],
        "waiting_response": waiting_response["id"],
        "conversation": conversation["id"],
        "vector_store": searched["id"],
        "file_batch": batch["id"],
        "conversation_item": items.json["first_id"],
        "cursor": page.json["next_cursor"],
    }


async def _indexed(world: World, store_id: str) -> None:
    async def done() -> bool:
        found = await world.call(ALICE_KEY, "GET", f"/v1/vector_stores/{store_id}")
        return found.json["file_counts"]["completed"] == 1

    await eventually(done)
