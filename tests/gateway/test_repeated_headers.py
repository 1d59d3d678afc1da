"""A header that names the caller or its user comes once: a second one is refused, never ignored."""

import pytest
from multidict import CIMultiDict
from pydantic import SecretStr

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import FakeEngine
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, TWO_TENANTS
from tests.gateway.running import CHAT, Answer, Gateway, question, running_gateway

CALLS = [
    ("POST", CHAT, question()),
    ("POST", "/v1/embeddings", {"input": "Hi."}),
    ("POST", "/v1/messages", {**question(), "max_tokens": 8}),
    ("POST", "/v1/responses", {"input": "Hi."}),
    ("POST", "/v1/memory/search", {"query": "q", "user_id": "alice"}),
    ("GET", "/v1/ping", None),
    ("POST", "/v3/memories/search", {"query": "q", "filters": {"user_id": "alice"}}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
]


async def _sent(it: Gateway, method: str, path: str, body: object, *headers: tuple[str, str]) -> Answer:
    sent = CIMultiDict([*headers, ("Accept", "application/json, text/event-stream")])
    async with it.http.request(method, it.url + path, json=body, headers=sent) as response:
        return Answer(response.status, response.headers, await response.read())


async def test_a_second_key_is_refused_by_every_api(settings: GatewaySettings, engine: FakeEngine) -> None:
    keys = [("Authorization", f"Bearer {key}") for key in (ALICE_KEY, BOB_KEY)]
    refused = {"type": "invalid_request_error", "code": "repeated_header", "param": "authorization"}
    async with running_gateway(settings.model_copy(update={"api_keys": SecretStr(TWO_TENANTS)})) as it:
        for method, path, body in CALLS:
            answer = await _sent(it, method, path, body, *keys)
            assert (answer.status, answer.error) == (400, refused | {"message": answer.error["message"]}), path
    assert engine.received == []


async def test_mem0s_client_is_told_in_its_own_field(gateway: Gateway) -> None:
    answer = await _sent(gateway, "GET", "/v1/ping", None, *[("Authorization", "Token a")] * 2)
    assert answer.json["detail"] == answer.error["message"]


@pytest.mark.parametrize(
    "name", ["Authorization", "X-API-Key", "X-Memory-User-Id", "X-Memory-Agent-Id", "Idempotency-Key"]
)
async def test_a_header_that_comes_twice_is_refused_though_both_are_equal(
    gateway: Gateway, engine: FakeEngine, name: str
) -> None:
    answer = await _sent(gateway, "POST", CHAT, question(), *[(name, "Bearer a")] * 2)
    assert answer.status == 400
    assert answer.error["param"] == name.lower()
    assert name.lower() in answer.error["message"]
    assert engine.received == []


async def test_other_headers_may_come_twice(gateway: Gateway) -> None:
    answer = await _sent(gateway, "POST", CHAT, question(), ("Via", "1.1 a"), ("Via", "1.1 b"))
    assert answer.status == 200
