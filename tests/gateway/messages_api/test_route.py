"""The Messages route has the limits, rates, rights and retries of the chat route, and answers in Anthropic's style."""

from collections.abc import Mapping

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import MODEL, FakeEngine, Hangs, Refuses, Says, SendsBytes
from tests.gateway.api_rig import configured
from tests.gateway.rig import eventually
from tests.gateway.running import Answer, Gateway, running_gateway
from tests.gateway.test_deep_json import DEPTHS, nested
from tests.gateway.test_long_context import CHUNKS, LONG, QUESTION
from tests.gateway.test_rate_limits import until_counted

PATH = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
HI = {"role": "user", "content": "Hi."}
HI_JSON = b'{"role":"user","content":"x"}'
MEMORY = {"memory": {"user_id": "u1"}}


async def ask(gateway: Gateway, headers: Mapping[str, str] | None = None, /, **fields: object) -> Answer:
    """A request for a message."""
    body = {"model": MODEL, "max_tokens": 10, "messages": [HI], **fields}
    return await gateway.post(PATH, body, headers=headers)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your prompt contains 9000 input tokens.",
            "prompt is too long: 9000 tokens > 8192 maximum",
        ),
        (
            (
                "'max_tokens' is too large: 1024. This model's maximum context length is 512 tokens and your request "
                "has 400 input tokens."
            ),
            (
                "input length and `max_tokens` exceed context limit: 400 + 1024 > 512, decrease input length or "
                "`max_tokens` and try again"
            ),
        ),
        (
            "input length exceeds the context length",
            "prompt is too long: input length exceeds the context length",
        ),
    ],
    ids=["prompt", "prompt and answer", "without numbers"],
)
async def test_a_request_beyond_the_window_is_refused_in_the_words_that_anthropics_clients_know(
    gateway: Gateway, engine: FakeEngine, words: str, shown: str
) -> None:
    engine.will(Refuses(400, {"error": {"message": words, "type": "BadRequestError", "param": None, "code": 400}}))
    answer = await ask(gateway)
    error = (answer.status, answer.error["type"], answer.error["message"], answer.error["code"])
    assert error == (400, "invalid_request_error", shown, "context_length_exceeded")


async def test_every_kind_of_refusal_is_in_anthropics_style(settings: GatewaySettings) -> None:
    async with running_gateway(settings, max_json_bytes=2_000) as gateway:
        refusals = [
            await ask(gateway, messages=[{"role": "user", "content": "x" * 3_000}]),
            await ask(gateway, {"Host": "evil.example"}),
            await ask(gateway, {"Content-Type": "text/plain"}),
            await gateway.get(PATH),
            await gateway.post(PATH, b"{"),
            await gateway.post(PATH, b"[]"),
            await ask(gateway, messages=[]),
            await gateway.post(f"{COUNT}/", {"model": MODEL}),
        ]
    found = [(answer.status, answer.error["type"], answer.error["code"]) for answer in refusals]
    assert found == [
        (413, "request_too_large", "too_large"),
        (403, "permission_error", "foreign_host"),
        (415, "invalid_request_error", "unsupported_media_type"),
        (405, "invalid_request_error", "method_not_allowed"),
        (400, "invalid_request_error", "invalid_json"),
        (400, "invalid_request_error", "invalid_json"),
        (400, "invalid_request_error", "validation_error"),
        (400, "invalid_request_error", "validation_error"),
    ]
    for answer in refusals:
        assert answer.json["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]


async def test_other_routes_keep_openais_style(gateway: Gateway) -> None:
    answer = await gateway.post("/v1/chat/completions", b"{")
    assert set(answer.json) == {"error"}
    assert "request-id" not in answer.headers


async def test_a_full_process_is_overloaded(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with running_gateway(settings, max_active_requests=1) as gateway:
        engine.will(Hangs("Hel"))
        body = {"model": MODEL, "max_tokens": 10, "messages": [HI], "stream": True}
        async with gateway.http.post(gateway.url + PATH, json=body) as stream:
            await stream.content.readany()
            refused = await ask(gateway)
            counting = await gateway.post(COUNT, {"model": MODEL, "messages": [HI]})
        assert (refused.status, refused.error["type"], refused.headers["Retry-After"]) == (503, "overloaded_error", "1")
        assert counting.status == 503

        async def room_again() -> bool:
            return (await ask(gateway)).status == 200

        await eventually(room_again)


@pytest.mark.parametrize("fields", [{}, {"stream": True}, MEMORY], ids=["whole", "stream", "with memory"])
async def test_tokens_are_what_the_engine_counted(settings: GatewaySettings, fields: dict[str, object]) -> None:
    async with running_gateway(settings, tokens_per_minute=1000) as gateway:
        await ask(gateway, messages=[{"role": "user", "content": "A rather long question. " * 9}], **fields)
        await until_counted(gateway, 10)


async def test_requests_and_counts_are_limited(settings: GatewaySettings) -> None:
    async with running_gateway(settings, requests_per_minute=2) as gateway:
        answers = [
            await ask(gateway),
            await gateway.post(COUNT, {"model": MODEL, "messages": [HI]}),
            await ask(gateway),
        ]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert (answers[-1].error["type"], "Retry-After" in answers[-1].headers) == ("rate_limit_error", True)
    assert answers[0].headers["x-ratelimit-limit-requests"] == "2"


async def test_a_key_without_the_scope_is_refused(settings: GatewaySettings) -> None:
    keys = configured("a", "reads", "scopes=memory:read")
    async with running_gateway(settings, api_keys=keys) as gateway:
        answer = await ask(gateway, {"x-api-key": "reads"})
    assert (answer.status, answer.error["type"], answer.error["code"]) == (403, "permission_error", "permission_denied")


async def test_a_request_with_a_key_is_answered_once(gateway: Gateway, engine: FakeEngine) -> None:
    answers = [await ask(gateway, {"Idempotency-Key": "k"}, **MEMORY) for _ in range(2)]
    assert answers[0].raw == answers[1].raw
    assert answers[1].headers["Idempotent-Replayed"] == "true"
    assert (len(engine.received), len(await gateway.queued_turns())) == (1, 1)
    refused = await ask(gateway, {"Idempotency-Key": "k2"}, stream=True)
    assert (refused.status, refused.error["code"]) == (400, "idempotency_key_with_stream")


async def test_a_long_text_is_read_and_reported_at_the_clients_own_place(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(*(Says(f"note {number}") for number in range(CHUNKS)), Says("In the north."))
    call: dict[str, object] = {"type": "tool_use", "id": "c", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": LONG}
    messages: list[object] = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result, {"type": "text", "text": QUESTION}]},
    ]
    fields = {"memory": {"mode": "off", "long_context": "auto"}, "system": "Be brief."}
    answer = await ask(gateway, messages=messages, **fields)
    assert answer.status == 200, answer.raw
    (part,) = answer.json["memory"]["long_context"]["parts"]
    assert (part["message_index"], part["chunks"]) == (2, CHUNKS)
    assert [block["text"] for block in answer.json["content"]] == ["In the north."]


@pytest.mark.parametrize(
    "field",
    [
        b'"messages":[{"role":"user","content":"x"}],"extra":%b',
        b'"messages":[{"role":"user","content":%b}]',
        b'"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"n","input":{"a":%b}}]},HI]',
        b'"messages":[{"role":"user","content":"x"}],"tools":[{"name":"t","input_schema":{"a":%b}}]',
        b'"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"a":%b}}]}]',
        b'"messages":[{"role":"user","content":"x"}],"memory":%b',
    ],
    ids=["an unknown field", "content", "input", "schema", "cache control", "memory"],
)
async def test_a_deep_request_is_answered_or_refused(gateway: Gateway, field: bytes) -> None:
    for path in (PATH, COUNT):
        limit = b'"max_tokens":9,' if path == PATH else b""
        answers = {
            depth: (
                await gateway.post(
                    path, b'{"model":"m",' + limit + field.replace(b"HI", HI_JSON) % nested(depth) + b"}"
                )
            ).status
            for depth in DEPTHS
        }
        assert set(answers.values()) <= {200, 400}, answers


async def test_a_deep_answer_of_the_engine_is_the_engines_fault(gateway: Gateway, engine: FakeEngine) -> None:
    deep = b'{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"n","arguments":{"a":%b}}}]}}]}'
    for depth in (100, 400, 2000):
        engine.will(SendsBytes([deep % nested(depth)]))
        answer = await ask(gateway)
        assert answer.status in {200, 502}, answer.raw
