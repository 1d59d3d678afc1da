"""``/mcp`` as HTTP sees it: keys, scopes, methods, sizes, and pages in a browser that are not ours."""

import hashlib
import signal
from typing import Any

import pytest
import uvicorn

from gateway.settings import GatewaySettings
from tests.gateway.mcp_client.caller import caller
from tests.gateway.running import Gateway, running_gateway

ACCEPT = {"Accept": "application/json, text/event-stream"}
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ONLY_READ = "a:{} scopes=memory:read".format(hashlib.sha256(b"only-read").hexdigest())


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}], ids=["no key", "a wrong key"])
async def test_without_a_known_key_nothing_is_disclosed(settings: GatewaySettings, headers: dict[str, str]) -> None:
    async with running_gateway(settings, api_keys=ONLY_READ) as gateway:
        answer = await gateway.post("/mcp", LIST, headers=ACCEPT | headers)
    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_a_key_sees_and_uses_the_tools_of_its_scopes(settings: GatewaySettings) -> None:
    async with running_gateway(settings, api_keys=ONLY_READ) as gateway, caller(gateway.url, "only-read") as client:
        names = [tool.name for tool in (await client.client.list_tools()).tools]
        assert names == ["memory_search", "memory_list", "memory_get"]
        refused = await client.refused("memory_add", text="Tea.", user_id="ann")
        assert refused["code"] == "permission_denied"
        refused = await client.refused("long_read", question="Where?", text="Here.")
        assert refused["code"] == "permission_denied"


async def test_there_are_no_sessions_to_listen_to_or_to_end(gateway: Gateway) -> None:
    for method in ("GET", "DELETE"):
        async with gateway.http.request(method, f"{gateway.url}/mcp", headers=ACCEPT) as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:6274"}, 200),
        ({}, 200),
    ],
)
async def test_without_keys_only_this_machine_is_answered(
    gateway: Gateway, headers: dict[str, str], status: int
) -> None:
    assert (await gateway.post("/mcp", LIST, headers=ACCEPT | headers)).status == status


async def test_with_keys_any_host_name_will_do(settings: GatewaySettings) -> None:
    async with running_gateway(settings, api_keys=ONLY_READ) as gateway:
        headers = ACCEPT | {"X-API-Key": "only-read", "Host": "memloop.example"}
        assert (await gateway.post("/mcp/", LIST, headers=headers)).status == 200


async def test_a_body_over_the_limit_is_refused(settings: GatewaySettings) -> None:
    async with running_gateway(settings, max_body_bytes=1000) as gateway:
        answer = await gateway.post("/mcp", LIST | {"params": {"x": "y" * 1000}}, headers=ACCEPT)
    assert (answer.status, answer.error["code"]) == (413, "too_large")


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"jsonrpc": "2.0"}', b'"\\ud800"'])
async def test_what_is_no_request_is_a_client_error(gateway: Gateway, body: bytes) -> None:
    for version in ({}, {"MCP-Protocol-Version": "2026-07-28"}):
        answer = await gateway.post("/mcp", body, headers=ACCEPT | version)
        assert 400 <= answer.status < 500
        assert b"Traceback" not in answer.raw


async def test_a_process_that_stops_answers_the_calls_that_it_still_takes(gateway: Gateway) -> None:
    assert (await gateway.post("/mcp", LIST, headers=ACCEPT)).status == 200
    uvicorn.Server(uvicorn.Config(gateway.app)).handle_exit(signal.SIGTERM, None)

    answer = await gateway.post("/mcp", LIST, headers=ACCEPT)

    assert b'"memory_search"' in answer.raw
