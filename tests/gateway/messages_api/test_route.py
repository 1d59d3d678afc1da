"""The Messages route has the limits, rates, rights and retries of the chat route, and answers in Anthropic's style."""

from collections.abc import Mapping

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, Cuts, FakeEngine, Hangs, Refuses, Says, SendsBytes
from tests.gateway.api_rig import ALICE_KEY, TWO_TENANTS, configured
from tests.gateway.rig import eventually
from tests.gateway.running import Answer, Gateway, running_gateway, said
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


def changed(settings: GatewaySettings, **changes: object) -> GatewaySettings:
    """The settings with these changes."""
    return GatewaySettings.model_validate({**settings.model_dump(), **changes})


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
    async with running_gateway(settings.model_copy(update={"max_json_bytes": 2_000})) as gateway:
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


async def test_an_error_in_mid_stream_is_an_event_of_anthropics(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Cuts("Hel"), Cuts("Hel"))
    for fields in ({}, MEMORY):
        answer = await ask(gateway, stream=True, **fields)
        assert [event.split(b"\n")[0] for event in answer.events][-2:] == [
            b"event: content_block_delta",
            b"event: error",
        ]
        assert answer.error_event["type"] == "api_error"


async def test_a_model_that_is_unknown_to_the_engine(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Refuses(404, {"error": {"message": "no such model", "type": "NotFoundError", "code": 404}}))
    answer = await ask(gateway, model="none")
    assert (answer.status, answer.error["type"], answer.error["message"]) == (404, "not_found_error", "no such model")


async def test_a_full_process_is_overloaded(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with running_gateway(settings.model_copy(update={"max_active_requests": 1})) as gateway:
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
    async with running_gateway(changed(settings, tokens_per_minute=1000)) as gateway:
        await ask(gateway, messages=[{"role": "user", "content": "A rather long question. " * 9}], **fields)
        await until_counted(gateway, 10)


async def test_requests_and_counts_are_limited(settings: GatewaySettings) -> None:
    async with running_gateway(changed(settings, requests_per_minute=2)) as gateway:
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
    async with running_gateway(changed(settings, api_keys=keys)) as gateway:
        answer = await ask(gateway, {"x-api-key": "reads"})
    assert (answer.status, answer.error["type"], answer.error["code"]) == (403, "permission_error", "permission_denied")


async def test_memory_needs_the_keys_right(settings: GatewaySettings, store: FakeStore) -> None:
    async with running_gateway(changed(settings, api_keys=configured("a", "chats", "scopes=chat"))) as gateway:
        refused = await ask(gateway, {"x-api-key": "chats"}, **MEMORY)
        named = await ask(gateway, {"x-api-key": "chats", "X-Memory-User-Id": "u1"})
    assert (refused.status, refused.error["param"]) == (403, "memory.mode")
    assert (named.status, "may neither read nor write" in named.json["memory"]["error"]) == (200, True)
    assert store.searches == []


async def test_memory_belongs_to_the_keys_tenant(settings: GatewaySettings, store: FakeStore) -> None:
    async with running_gateway(changed(settings, api_keys=TWO_TENANTS)) as gateway:
        await ask(gateway, {"x-api-key": ALICE_KEY}, **MEMORY)
    assert store.searches[0].namespace.tenant == "a"


async def test_a_request_with_a_key_is_answered_once(gateway: Gateway, engine: FakeEngine) -> None:
    answers = [await ask(gateway, {"Idempotency-Key": "k"}, **MEMORY) for _ in range(2)]
    assert answers[0].raw == answers[1].raw
    assert answers[1].headers["Idempotent-Replayed"] == "true"
    assert (len(engine.received), len(await gateway.queued_turns())) == (1, 1)
    refused = await ask(gateway, {"Idempotency-Key": "k2"}, stream=True)
    assert (refused.status, refused.error["code"]) == (400, "idempotency_key_with_stream")


async def test_a_turn_is_written_once_with_the_whole_answer_of_a_stream(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Says(pieces=["Hel", "lo."]))
    await ask(gateway, stream=True, **MEMORY)
    assert [said(turns) for turns in await gateway.queued_turns()] == [[("user", "Hi."), ("assistant", "Hello.")]]


async def test_memories_stand_before_the_last_words_of_the_user(
    gateway: Gateway, engine: FakeEngine, store: FakeStore
) -> None:
    store.finds = [memory("m1", "The user likes tea.")]
    messages: list[object] = [
        HI,
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "text", "text": "Tea?"}]},
    ]
    await ask(gateway, messages=messages, system="Be brief.", **MEMORY)
    sent = engine.last.json["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert "The user likes tea." in sent[3]["content"]
    assert sent[3]["content"].endswith("\n\nTea?")


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


async def test_closing_the_connection_aborts_the_engine(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Hangs("Hel"))
    body = {"model": MODEL, "max_tokens": 10, "messages": [HI], "stream": True, **MEMORY}
    async with gateway.http.post(gateway.url + PATH, json=body) as stream:
        await stream.content.readany()
    await engine.until_running(0)
    assert engine.aborted == 1
    assert await gateway.queued_turns() == []
