"""JSON of any depth in any field of a chat: it reaches the engine or is refused, and is no failure of ours."""

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import FakeEngine, Says, SendsBytes
from tests.gateway.mcp_client.test_http import ACCEPT
from tests.gateway.running import CHAT, Gateway, running_gateway

DEPTHS = (100, 250, 251, 252, 253, 254, 255, 300, 1000, 1021, 1022, 1023, 1024, 5000, 100_000)
FIELDS = {
    "an unknown field": b'"messages":[{"role":"user","content":"x"}],"extra":%b',
    "tools": b'"messages":[{"role":"user","content":"x"}],"tools":[%b]',
    "a message": b'"messages":[{"role":"user","content":"x","extra":%b}]',
    "tool calls": b'"messages":[{"role":"assistant","tool_calls":%b},{"role":"user","content":"x"}]',
    "a part": b'"messages":[{"role":"user","content":[{"type":"text","text":"x","extra":%b}]}]',
    "memory": b'"messages":[{"role":"user","content":"x"}],"memory":%b',
}
MEMORY = b',"memory":{"user_id":"u1","long_context":"auto"}'


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


async def expect_answered_or_refused(gateway: Gateway, path: str, field: bytes, *mores: bytes) -> None:
    for more in mores:
        bodies = {depth: b'{"model":"m",' + field % nested(depth) + more + b"}" for depth in DEPTHS}
        found = {depth: (await gateway.post(path, body)).status for depth, body in bodies.items()}
        assert set(found.values()) <= {200, 400, 422}, (more, found)


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
async def test_a_deep_chat_is_answered_or_refused(settings: GatewaySettings, field: bytes) -> None:
    changes = {"tokens_per_minute": 10**9, "memory_for_users": True}
    async with running_gateway(settings.model_copy(update=changes)) as gateway:
        streams, cut = b',"user":"u1","stream":true', b',"cut":"\\ud800"'
        await expect_answered_or_refused(gateway, CHAT, field, b"", MEMORY, streams, cut)


RESPONSE_FIELDS = {
    "an unknown field": b'"input":"x","extra":%b',
    "parameters": b'"input":"x","tools":[{"type":"function","name":"f","parameters":{"a":%b}}]',
    "a schema": b'"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"a":%b}}}',
    "an item": b'"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}","extra_content":%b}]',
    "annotations": b'"input":[{"role":"user","content":[{"type":"output_text","text":"x","annotations":[{"a":%b}]}]}]',
    "memory": b'"input":"x","memory":%b',
    "metadata": b'"input":"x","metadata":{"a":%b}',
}


@pytest.mark.parametrize("field", RESPONSE_FIELDS.values(), ids=RESPONSE_FIELDS)
async def test_a_deep_response_is_answered_or_refused(gateway: Gateway, field: bytes) -> None:
    remembers, unstored = b',"memory":{"user_id":"u1"}', b',"store":false'
    await expect_answered_or_refused(gateway, "/v1/responses", field, b"", b',"stream":true', unstored, remembers)


async def test_a_refused_depth_is_named(gateway: Gateway, engine: FakeEngine) -> None:
    answer = await gateway.post(CHAT, b'{"model":"m",' + FIELDS["an unknown field"] % nested(400) + MEMORY + b"}")
    assert (answer.status, answer.error["code"]) == (400, "too_deep")
    assert not engine.received


async def test_a_deep_answer_of_the_engine_is_the_engines_fault(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(SendsBytes([b'{"choices":[],"extra":%b}' % nested(400)]), Says("Fine."))
    assert (await gateway.chat(memory={"user_id": "u1"})).status == 502
    assert (await gateway.chat(memory={"user_id": "u1"})).status == 200


@pytest.mark.parametrize("path", ["/v1/memory/add", "/v1/memory/search", "/v3/memories/add", "/v3/memories/search"])
async def test_deep_metadata_is_refused(gateway: Gateway, path: str) -> None:
    for depth in DEPTHS:
        for name in (b"metadata", b"filters", b"messages", b"extra"):
            body = b'{"messages":[{"role":"user","content":"x"}],"user_id":"u","query":"q","%b":{"a":%b}}'
            answer = await gateway.post(path, body % (name, nested(depth)))
            assert answer.status in {400, 422}, (depth, name, answer.raw)


async def test_deep_arguments_of_a_tool_are_refused(gateway: Gateway) -> None:
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":%b}}}'
    for depth in DEPTHS:
        answer = await gateway.post("/mcp", call % nested(depth), headers=ACCEPT)
        assert answer.status < 500, (depth, answer.raw)
        assert b"internal" not in answer.raw.lower(), (depth, answer.raw)


async def test_a_deep_last_event_of_the_engine_breaks_the_stream_and_is_named(
    gateway: Gateway, engine: FakeEngine
) -> None:
    chunk = b'data: {"choices":[],"usage":{"total_tokens":1},"extra":%b}\n\n' % nested(400)
    engine.will(SendsBytes([chunk], content_type="text/event-stream"))
    answer = await gateway.chat(memory={"user_id": "u1"}, stream=True)
    assert answer.error_event["type"] == "upstream_error"
