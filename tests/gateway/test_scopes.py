"""Scopes: every route asks for one, a key without it is refused, and what a key with few of them gets."""

import hashlib
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from openai import AsyncOpenAI, PermissionDeniedError

from gateway.document import needs_of
from gateway.main import build_app
from gateway.settings import GatewaySettings
from memloop.wire.keys import ALL_SCOPES, Scope
from tests.gateway.api_rig import configured
from tests.gateway.long_reads import PATH as READ
from tests.gateway.long_reads import asked
from tests.gateway.rig import script
from tests.gateway.running import Gateway, error_in, running_gateway
from tests.gateway.tenant_rows.all_rows import OPEN
from tests.gateway.tenants import routes_of
from tests.gateway.whole import whole

SCOPES: tuple[Scope, ...] = tuple(sorted(ALL_SCOPES))
APP = build_app(GatewaySettings())


def _api_routes(app: FastAPI) -> dict[str, APIRoute]:
    return {
        f"{method} {route.path}": route
        for route in app.routes
        if isinstance(route, APIRoute)
        for method in route.methods
        if f"{method} {route.path}" not in OPEN
    }


ROUTES = _api_routes(APP)


@asynccontextmanager
async def scoped(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway with two keys for each scope: ``only-S`` has it alone, ``not-S`` has all the others."""
    held = {f"only-{scope}": {scope} for scope in SCOPES} | {f"not-{scope}": ALL_SCOPES - {scope} for scope in SCOPES}
    entries = [f"a:{hashlib.sha256(key.encode()).hexdigest()} scopes={'+'.join(names)}" for key, names in held.items()]
    keyed = GatewaySettings.model_validate({**settings.model_dump(), "api_keys": ",".join(entries)})
    async with running_gateway(keyed) as gateway:
        yield gateway


async def _asked(gateway: Gateway, route: str, key: str) -> tuple[int, str]:
    method, path = route.split()
    url = gateway.url + re.sub(r"{[^}]*}", "x", path)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with gateway.http.request(method, url, data=b"{", headers=headers) as response:
        return response.status, error_in(await response.json())["code"] if response.status >= 400 else ""


def test_every_route_that_is_not_open_asks_for_exactly_one_scope_or_any_key() -> None:
    guarded = {f"{method} {path}" for method, path in routes_of(APP)} - set(OPEN)
    assert guarded == set(ROUTES)
    assert {name: len(needs_of(route)) for name, route in ROUTES.items()} == dict.fromkeys(ROUTES, 1)


async def test_a_key_without_the_routes_scope_is_refused_before_anything_is_read(settings: GatewaySettings) -> None:
    asking = {name: scope for name, route in ROUTES.items() if (scope := needs_of(route)[0].scope) is not None}
    async with scoped(settings) as gateway:
        lacking = {name: await _asked(gateway, name, f"not-{scope}") for name, scope in asking.items()}
        having = {name: await _asked(gateway, name, f"only-{scope}") for name, scope in asking.items()}
    assert set(asking.values()) >= {"chat", "memory:read", "memory:write", "long-read"}
    assert lacking == dict.fromkeys(asking, (403, "permission_denied"))
    assert [name for name, (status, _) in having.items() if status in (401, 403)] == []


async def test_a_route_for_any_key_takes_every_key(settings: GatewaySettings) -> None:
    async with scoped(settings) as gateway:
        answers = [await gateway.get("/v1/models", headers={"X-API-Key": f"only-{scope}"}) for scope in SCOPES]
    assert [answer.status for answer in answers] == [200] * len(SCOPES)


async def test_openais_client_sees_a_permission_error_that_names_the_scope(settings: GatewaySettings) -> None:
    async with scoped(settings) as gateway:
        client = AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="not-chat", max_retries=0)
        with pytest.raises(PermissionDeniedError) as refused:
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi."}])
        await client.close()
    assert (refused.value.type, refused.value.code) == ("permission_error", "permission_denied")
    assert "Missing scopes: chat." in refused.value.message


async def test_a_read_may_not_save_to_memory_with_a_key_that_may_not_write(settings: GatewaySettings) -> None:
    async with scoped(settings) as gateway:
        body = asked(save_to_memory={"user_id": "alice"})
        refused = await gateway.post(READ, body, headers={"X-API-Key": "only-long-read"})
    assert (refused.status, refused.error["param"]) == (403, "save_to_memory")


async def test_a_key_that_may_not_read_is_not_shown_what_its_write_found(settings: GatewaySettings) -> None:
    said = {"messages": [{"role": "user", "content": "Tea."}], "user_id": "alice", "infer": False}
    changed = settings.model_copy(update={"sync_wait_s": 0.01})
    async with scoped(changed) as gateway:
        answer = await gateway.post("/v1/memory/add", said, headers={"X-API-Key": "not-memory:read"})
        shown = await gateway.post("/v1/memory/add", said, headers={"X-API-Key": "not-chat"})
    assert set(answer.json) == {"event_id", "status"}
    assert "decisions" in shown.json


async def test_a_key_that_may_not_read_changes_a_memory_unseen(redis_url: str, tmp_path: Path) -> None:
    keys = ",".join([configured("a", "w", "scopes=memory:write"), configured("a", "all", "")])
    async with whole(redis_url, tmp_path, script("Hello."), api_keys=keys) as it:
        writer, body = (
            {"X-API-Key": "w"},
            {"messages": [{"role": "user", "content": "I ski."}], "user_id": "u", "infer": False},
        )
        await it.gateway.post("/v1/memory/add", body, headers=writer)
        (item,) = (await it.gateway.get("/v1/memory?user_id=u", headers={"X-API-Key": "all"})).json["data"]
        path = f"/v1/memory/{item['id']}"
        update = {"name": "memory_update", "arguments": {"id": item["id"], "tags": ["b"]}}
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": update}
        asked: list[tuple[str, str, object]] = [
            ("PATCH", path, {"tags": ["a"]}),
            ("POST", f"{path}/feedback", {"feedback": "helpful"}),
            ("POST", f"{path}/recover", None),
            ("PUT", f"/v1/memories/{item['id']}/", {"metadata": {"a": 1}}),
            ("POST", "/mcp", rpc),
        ]
        accepts = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        for method, url, sent in asked:
            async with it.gateway.http.request(
                method, it.gateway.url + url, json=sent, headers={**writer, **accepts}
            ) as answer:
                shown = await answer.text()
                assert answer.status == 200, shown
                assert item["id"] in shown
                assert "I ski." not in shown
