"""Without keys every route is for this machine's own programs; pages in a browser need an origin that is listed."""

import hashlib
import re

import pytest

from gateway.main import NOT_JSON, build_app
from gateway.settings import GatewaySettings
from tests.gateway.running import CHAT, Answer, Gateway, question, running_gateway
from tests.gateway.tenants import routes_of

ROUTES = [f"{method} {path}" for method, path in routes_of(build_app(GatewaySettings()))]
SAID = {"messages": [{"role": "user", "content": "Tea."}], "user_id": "alice"}


async def called(gateway: Gateway, route: str, body: bytes | None, headers: dict[str, str]) -> Answer:
    method, path = route.split()
    url = gateway.url + re.sub(r"{[^}]*}", "x", path)
    async with gateway.http.request(method, url, data=body, headers=headers) as response:
        return Answer(response.status, response.headers, await response.read())


async def refusals(gateway: Gateway, headers: dict[str, str], *, body: bytes | None = None) -> dict[str, object]:
    """Status and code of every route that the request is sent to."""
    answers = {route: await called(gateway, route, body, headers) for route in ROUTES}
    return {route: (answer.status, answer.error["code"]) for route, answer in answers.items()}


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:7800", "localhost.evil.example", "10.0.0.1", "127.0.0.1@evil.example", "[::2]:80"],
)
async def test_no_route_answers_under_a_foreign_host(gateway: Gateway, host: str) -> None:
    found = await refusals(gateway, {"Host": host})
    assert found == dict.fromkeys(ROUTES, (403, "foreign_host"))


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://"])
async def test_no_route_answers_a_page_of_another_site(gateway: Gateway, origin: str) -> None:
    found = await refusals(gateway, {"Origin": origin})
    assert found == dict.fromkeys(ROUTES, (403, "foreign_origin"))


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain; a=/json"],
)
async def test_no_json_route_takes_another_body(gateway: Gateway, media_type: str) -> None:
    routes = [route for route in ROUTES if not route.endswith(NOT_JSON)]
    answers = {route: await called(gateway, route, b"{}", {"Content-Type": media_type}) for route in routes}
    found = {route: (answer.status, answer.error["code"]) for route, answer in answers.items()}
    assert found == dict.fromkeys(routes, (415, "unsupported_media_type"))


async def test_a_page_cannot_have_anything_remembered(gateway: Gateway) -> None:
    for headers in ({"Content-Type": "text/plain"}, {"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        assert (await gateway.post("/v1/memory/add", SAID, headers=headers)).status in {403, 415}
    assert await gateway.queued_turns() == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7800", "127.0.0.1", "127.8.9.1:1", "[::1]", "[::1]:7800"])
async def test_this_machine_is_answered_at_any_port(gateway: Gateway, host: str) -> None:
    headers = {"Host": host, "Origin": "http://localhost:6274", "Content-Type": "application/json; charset=utf-8"}
    assert (await gateway.post(CHAT, question(), headers=headers)).status == 200
    assert (await gateway.get("/v1/memory/buffers", headers={"Host": host})).status != 403


async def test_with_keys_any_host_name_and_any_page_will_do(settings: GatewaySettings) -> None:
    keyed = {**settings.model_dump(), "api_keys": f"a:{hashlib.sha256(b'key').hexdigest()}"}
    async with running_gateway(GatewaySettings.model_validate(keyed)) as gateway:
        headers = {"X-API-Key": "key", "Host": "memloop.example", "Origin": "https://app.example"}
        assert (await gateway.post(CHAT, question(), headers=headers)).status == 200


PAGE = "https://app.example"
KEY = {"api_keys": f"a:{hashlib.sha256(b'key').hexdigest()}"}


def lets_in(settings: GatewaySettings, **more: str) -> GatewaySettings:
    return GatewaySettings.model_validate(
        {**settings.model_dump(), "cors_origins": f"{PAGE},http://localhost:3000", **more}
    )


async def preflight(gateway: Gateway, origin: str) -> Answer:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type, x-stainless-os",
    }
    async with gateway.http.options(gateway.url + CHAT, headers=asked) as response:
        return Answer(response.status, response.headers, await response.read())


@pytest.mark.parametrize("keys", [{}, KEY], ids=["without keys", "with keys"])
async def test_a_browser_is_told_that_a_listed_page_may_call(settings: GatewaySettings, keys: dict[str, str]) -> None:
    async with running_gateway(lets_in(settings, **keys)) as gateway:
        answer = await preflight(gateway, PAGE)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "authorization" in answer.headers["access-control-allow-headers"].lower()
        assert "access-control-allow-credentials" not in answer.headers
        other = await preflight(gateway, "https://evil.example")
        assert "access-control-allow-origin" not in other.headers


async def test_answers_and_refusals_can_be_read_by_a_listed_page(settings: GatewaySettings) -> None:
    async with running_gateway(lets_in(settings, **KEY)) as gateway:
        for headers, status in (({"Authorization": "Bearer key"}, 200), ({}, 401)):
            answer = await gateway.post(CHAT, question(), headers={**headers, "Origin": PAGE})
            assert answer.status == status
            assert answer.headers["access-control-allow-origin"] == PAGE


async def test_without_keys_a_listed_page_is_answered_and_another_is_not(settings: GatewaySettings) -> None:
    async with running_gateway(lets_in(settings)) as gateway:
        assert (await gateway.post(CHAT, question(), headers={"Origin": PAGE})).status == 200
        refused = await gateway.post(CHAT, question(), headers={"Origin": "https://evil.example"})
        assert (refused.status, refused.error["code"]) == (403, "foreign_origin")


async def test_without_the_setting_no_page_is_told_anything(gateway: Gateway) -> None:
    answer = await gateway.post(CHAT, question(), headers={"Origin": "http://localhost:3000"})
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "origins", ["app.example", "https://app.example/", "*", "https://a.example, https://b.example"]
)
def test_what_is_no_origin_ends_the_start(settings: GatewaySettings, origins: str) -> None:
    with pytest.raises(ValueError, match="is no origin"):
        GatewaySettings.model_validate({**settings.model_dump(), "cors_origins": origins})
