"""Pages of listed origins may call the API from a browser, and no others."""

import hashlib

import pytest

from gateway.settings import GatewaySettings
from tests.gateway.running import CHAT, Answer, Gateway, question, running_gateway

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
