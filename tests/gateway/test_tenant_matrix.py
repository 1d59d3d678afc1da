"""Every route of the gateway against a caller of another tenant, and against callers without a known key.

The routes come from the router: one without a row in ``tenant_rows`` fails ``test_every_route_has_a_row``.
"""

import re
from pathlib import Path

import pytest

from gateway.main import build_app
from gateway.settings import GatewaySettings
from gateway.worker import working
from tests.gateway.api_rig import BOB_KEY, TWO_TENANTS
from tests.gateway.running import error_in, running_gateway
from tests.gateway.tenant_rows.all_rows import ATTEMPTS, OPEN, SAME_FOR_ALL
from tests.gateway.tenant_rows.memory import SAID
from tests.gateway.tenants import CANARY, World, routes_of, two_tenants

ROUTES = [f"{method} {path}" for method, path in routes_of(build_app(GatewaySettings()))]


def test_every_route_has_a_row() -> None:
    rows = [*OPEN, *SAME_FOR_ALL, *ATTEMPTS]
    assert len(ROUTES) == len(set(ROUTES))
    assert sorted(rows) == sorted(ROUTES)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("route", ATTEMPTS)
async def test_another_tenant_reaches_nothing(route: str, world: World, owned: dict[str, bytes]) -> None:
    method, world = route.split()[0], await world.another_b()
    for attempt in ATTEMPTS[route]:
        answer = await world.attempt(method, attempt)
        assert answer.status == attempt.status, (attempt, answer.raw)
        assert attempt.shows(answer.json), (attempt, answer.raw)
        assert CANARY.encode() not in answer.raw
        told = [id_ for id_ in world.ids.values() if id_.encode() in answer.raw]
        assert [id_ for id_ in told if id_ not in attempt.path.format_map(world.ids)] == []
    assert CANARY.encode() not in world.engine_was_told()
    if method != "GET":  # what a GET changed, the next of the others finds
        assert await world.what_a_owns() == owned


async def test_the_worker_decides_over_the_callers_own_memories_only(redis_url: str, tmp_path: Path) -> None:
    async with two_tenants(redis_url, tmp_path) as world:
        await world.call("alice-key", "DELETE", f"/v1/long-read/{world.ids['waiting_read']}")
        await world.call("alice-key", "POST", f"/v1/responses/{world.ids['waiting_response']}/cancel")
        await world.gateway.memory.queue.lanes.forget("a/alice", world.ids["waiting_event"])
        async with working(world.gateway.work, world.settings):
            answer = await world.call(BOB_KEY, "POST", "/v1/memory/add", {**SAID, "sync": True})
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
                error = error_in(await response.json())
                answered[route] = (response.status, error["type"], error["code"])
                assert response.headers["WWW-Authenticate"] == "Bearer"
    assert answered == dict.fromkeys(guarded, (401, "authentication_error", "invalid_api_key"))


async def test_open_routes_need_no_key(settings: GatewaySettings) -> None:
    keyed = GatewaySettings.model_validate({**settings.model_dump(), "api_keys": TWO_TENANTS})
    async with running_gateway(keyed) as gateway:
        answered = {route: (await gateway.get(route.split()[1])).status for route in OPEN}
    assert not [route for route, status in answered.items() if status in {401, 403}]
