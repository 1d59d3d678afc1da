"""Every route of the gateway against a caller of another tenant, and against callers without a known key.

The routes come from the router: one without a row fails ``test_every_route_has_a_row``.
"""

import re
from pathlib import Path

import pytest

from gateway.main import build_app
from gateway.settings import GatewaySettings
from gateway.worker import working
from tests.gateway.api_rig import BOB_KEY, TWO_TENANTS
from tests.gateway.long_reads import asked
from tests.gateway.running import running_gateway
from tests.gateway.tenants import CANARY, Attempt, routes_of, two_tenants

OPEN = {
    "GET /livez": "says only that the process runs",
    "GET /readyz": "names dependencies",
    "GET /metrics": "no label holds a tenant or a user",
    "GET /openapi.json": "the same for all",
    "GET /docs": "the same for all",
    "GET /docs/oauth2-redirect": "the same for all",
    "GET /redoc": "the same for all",
}
"""Routes that need no key, and why they may."""

SAME_FOR_ALL = {
    "GET /v1/models": "the engine's list",
    "GET /v1/models/{model_id:path}": "the engine's list",
    "POST /v1/embeddings": "passed through; nothing is kept",
    "POST /v1/completions": "passed through; nothing is kept",
    "POST /v1/long-read/estimate": "counts what the request itself carries; nothing is kept",
}
"""Routes that need a key and hold nothing of a tenant, and why."""

_CHAT = {"model": "m", "messages": [{"role": "user", "content": "When is tea?"}]}
_SAID = {"messages": [{"role": "user", "content": "Mine."}], "user_id": "alice"}
_EMPTY_READS = Attempt("/v1/long-read", None, 200, lambda body: body["data"] == [] and not body["has_more"])

ATTEMPTS: dict[str, list[Attempt]] = {
    "POST /v1/chat/completions": [
        Attempt("/v1/chat/completions", _CHAT | named, 200, lambda body: body["memory"]["retrieved"] == [])
        for named in ({"memory": {"user_id": "alice"}}, {"user": "alice"}, {"metadata": {"user_id": "alice"}}, {})
    ],
    "POST /v1/responses": [
        Attempt("/v1/responses", {"model": "m", "input": "x", "previous_response_id": "resp_of_a"}, 501),
        Attempt("/v1/responses", {"model": "m", "input": "x", "conversation": "conv_of_a"}, 501),
    ],
    "POST /v1/long-read": [
        Attempt("/v1/long-read", asked(save_to_memory={"user_id": "alice"}), 200, lambda body: body["id"] != ""),
        Attempt("/v1/long-read", asked(document={"file_id": "{read}"}), 501),
    ],
    "GET /v1/long-read": [_EMPTY_READS, Attempt("/v1/long-read?after={read}")],
    "GET /v1/long-read/{read_id}": [
        Attempt("/v1/long-read/{read}"),
        Attempt("/v1/long-read/{waiting_read}"),
        Attempt("/v1/long-read/{read}?stream=true&starting_after=-1"),
        Attempt("/v1/long-read/{event}"),
    ],
    "POST /v1/long-read/{read_id}/cancel": [
        Attempt("/v1/long-read/{read}/cancel"),
        Attempt("/v1/long-read/{waiting_read}/cancel"),
        Attempt("/v1/long-read/{waiting_event}/cancel"),
    ],
    "DELETE /v1/long-read/{read_id}": [
        Attempt("/v1/long-read/{read}"),
        Attempt("/v1/long-read/{waiting_read}"),
        Attempt("/v1/long-read/{waiting_event}"),
    ],
    "POST /v1/memory/add": [
        Attempt("/v1/memory/add", _SAID, 202, lambda body: body["status"] == "queued"),
        Attempt("/v1/memory/add", _SAID | {"tenant": "a"}, 422),
    ],
    "POST /v1/memory/search": [
        Attempt("/v1/memory/search", {"query": "tea at five", "user_id": "alice"}, 200, lambda b: b == {"results": []}),
        Attempt(
            "/v1/memory/search",
            {
                "query": "tea",
                "user_id": "alice",
                "include_raw": True,
                "latest_only": False,
                "filters": {"OR": [{"tenant": {"eq": "a"}}, {"user_id": "*"}]},
            },
            200,
            lambda body: body == {"results": []},
        ),
        Attempt("/v1/memory/search", {"query": "tea", "user_id": "alice", "tenant": "a"}, 422),
    ],
    "GET /v1/memory/events": [
        Attempt("/v1/memory/events?user_id=alice", None, 200, lambda body: body == {"events": []}),
        Attempt("/v1/memory/events?user_id=a:alice", None, 200, lambda body: body == {"events": []}),
    ],
    "GET /v1/memory/events/{event_id}": [
        Attempt("/v1/memory/events/{event}"),
        Attempt("/v1/memory/events/{waiting_event}"),
        Attempt("/v1/memory/events/{read}"),
    ],
    "GET /v1/memory/buffers": [
        Attempt(f"/v1/memory/buffers{query}", None, 200, lambda body: body == {"buffers": []})
        for query in ("", "?user_id=alice")
    ],
    "POST /v1/memory/buffers/flush": [
        Attempt("/v1/memory/buffers/flush", {"user_id": "alice"}, 202, lambda body: body == {"events": []})
    ],
    "POST /v1/memory/export": [Attempt("/v1/memory/export", {"user_id": "alice"}, 501)],
    "POST /v1/memory/import": [Attempt("/v1/memory/import", {"user_id": "alice"}, 501)],
    "GET /v1/memory": [
        Attempt("/v1/memory?user_id=alice", None, 200, lambda body: body["items"] == []),
        Attempt("/v1/memory?user_id=alice&cursor={cursor}", None, 200, lambda body: body["items"] == []),
    ],
    "DELETE /v1/memory": [Attempt("/v1/memory?user_id=alice", None, 200, lambda body: not any(body.values()))],
    "GET /v1/memory/{item_id}": [Attempt("/v1/memory/{item}")],
    "PATCH /v1/memory/{item_id}": [Attempt("/v1/memory/{item}", {"memory": "B was here"})],
    "DELETE /v1/memory/{item_id}": [Attempt("/v1/memory/{item}")],
    "GET /v1/memory/{item_id}/history": [Attempt("/v1/memory/{item}/history")],
}
"""How tenant B tries to reach what tenant A owns."""

ROUTES = [f"{method} {path}" for method, path in routes_of(build_app(GatewaySettings()))]


def test_every_route_has_a_row() -> None:
    rows = [*OPEN, *SAME_FOR_ALL, *ATTEMPTS]
    assert len(ROUTES) == len(set(ROUTES))
    assert sorted(rows) == sorted(ROUTES)


@pytest.mark.parametrize("route", ATTEMPTS)
async def test_another_tenant_reaches_nothing(route: str, redis_url: str, tmp_path: Path) -> None:
    method = route.split()[0]
    async with two_tenants(redis_url, tmp_path) as world:
        before = await world.what_a_owns()
        for attempt in ATTEMPTS[route]:
            answer = await world.attempt(method, attempt)
            assert answer.status == attempt.status, (attempt, answer.raw)
            assert attempt.shows(answer.json), (attempt, answer.raw)
            assert CANARY.encode() not in answer.raw
            told = [id_ for id_ in world.ids.values() if id_.encode() in answer.raw]
            assert [id_ for id_ in told if id_ not in attempt.path.format_map(world.ids)] == []
        assert CANARY.encode() not in world.engine_was_told()
        assert await world.what_a_owns() == before


async def test_the_worker_decides_over_the_callers_own_memories_only(redis_url: str, tmp_path: Path) -> None:
    async with two_tenants(redis_url, tmp_path) as world:
        await world.call("alice-key", "DELETE", f"/v1/long-read/{world.ids['waiting_read']}")
        await world.gateway.services.jobs.memory.forget("a/alice", world.ids["waiting_event"], index="memloop:none")
        async with working(world.gateway.services, world.settings):
            answer = await world.call(BOB_KEY, "POST", "/v1/memory/add", {**_SAID, "sync": True})
        assert answer.status == 200
        assert CANARY.encode() not in answer.raw
        assert b"Mine." in world.engine_was_told()
        assert CANARY.encode() not in world.engine_was_told()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Token wrong"},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer"},
        {"X-API-Key": "wrong"},
        {"X-API-Key": "alice-key", "Authorization": "Bearer wrong"},
    ],
    ids=["no key", "wrong Bearer", "wrong Token", "Basic", "empty Bearer", "wrong X-API-Key", "wrong beside right"],
)
async def test_without_a_known_key_every_route_answers_401(settings: GatewaySettings, headers: dict[str, str]) -> None:
    keyed = GatewaySettings.model_validate({**settings.model_dump(), "api_keys": TWO_TENANTS})
    answered: dict[str, tuple[int, str, str]] = {}
    guarded = [route for route in ROUTES if route not in OPEN]
    async with running_gateway(keyed) as gateway:
        for route in guarded:
            method, path = route.split()
            url = gateway.url + re.sub(r"{[^}]*}", "x", path)
            async with gateway.http.request(method, url, data=b"{", headers=headers) as response:
                error = (await response.json())["error"]
                assert set(error) == {"message", "type", "param", "code"}
                answered[route] = (response.status, error["type"], error["code"])
                assert response.headers["WWW-Authenticate"] == "Bearer"
    assert answered == dict.fromkeys(guarded, (401, "authentication_error", "invalid_api_key"))


async def test_open_routes_need_no_key(settings: GatewaySettings) -> None:
    keyed = GatewaySettings.model_validate({**settings.model_dump(), "api_keys": TWO_TENANTS})
    async with running_gateway(keyed) as gateway:
        answered = {route: (await gateway.get(route.split()[1])).status for route in OPEN}
    assert answered == dict.fromkeys(OPEN, 200)
