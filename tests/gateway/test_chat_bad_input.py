"""Bad requests, lost dependencies, URLs that no engine may open: each a clear OpenAI-shaped error or outcome."""

from typing import Any

import orjson
import pytest

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import MODEL, FakeEngine, Refuses, SendsBytes
from tests.gateway.running import CHAT, Gateway, question, running_gateway, said


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b'{"model": NaN}', b"[1]", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"a": 1} x'],
    ids=["empty", "cut", "NaN", "list", "string", "not UTF-8", "deeply nested", "trailing text"],
)
async def test_body_that_is_no_json_object_is_refused(gateway: Gateway, engine: FakeEngine, raw: bytes) -> None:
    answer = await gateway.post(CHAT, raw)
    assert (answer.status, answer.error["code"]) == (400, "invalid_json")
    assert answer.error["type"] == "invalid_request_error"
    assert not engine.received


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"memory": {"user_id": "u1", "mode": "sometimes"}}, "memory.mode"),
        ({"memory": {"user_id": "u1", "top_k": 0}}, "memory.top_k"),
        ({"memory": {"user_id": ""}}, "memory.user_id"),
        ({"memory": "yes"}, "memory"),
        ({"messages": []}, "messages"),
        ({"messages": "Hi."}, "messages"),
        ({"messages": [{"content": "Hi."}]}, "messages.0.role"),
        ({"model": None}, "model"),
        ({"metadata": {f"k{number}": "v" for number in range(17)}}, "metadata"),
        ({"metadata": {"k": "v" * 513}}, "metadata.k"),
    ],
)
async def test_field_that_does_not_validate_is_named(
    gateway: Gateway, engine: FakeEngine, fields: dict[str, object], param: str
) -> None:
    answer = await gateway.post(CHAT, {**question(), **fields})
    assert (answer.status, answer.error["param"]) == (422, param)
    assert answer.error["message"].startswith(f"{param}: ")
    assert "Tuple" not in answer.error["message"]
    assert not engine.received


async def test_body_over_the_limit_is_refused(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with running_gateway(settings.model_copy(update={"max_body_bytes": 1000})) as gateway:
        answer = await gateway.chat("x" * 1000)
    assert (answer.status, answer.error["code"]) == (413, "too_large")
    assert not engine.received


async def test_nul_passes_to_the_engine_and_the_writer(gateway: Gateway, engine: FakeEngine) -> None:
    answer = await gateway.chat("a\0b", memory={"user_id": "u1"})
    assert answer.status == 200
    assert engine.last.json["messages"][0]["content"] == "a\0b"
    (turns,) = await gateway.queued_turns()
    assert said(turns)[0] == ("user", "a\0b")


@pytest.mark.parametrize("memory", [b"", b',"memory":{"user_id":"u1"}'], ids=["passed through", "with memory"])
async def test_half_a_character_becomes_a_replacement_character(
    gateway: Gateway, engine: FakeEngine, memory: bytes
) -> None:
    raw = b'{"model":"m","messages":[{"role":"user","content":"cut \\ud83d here"}]%b}' % memory
    answer = await gateway.post(CHAT, raw)
    assert answer.status == 200
    assert engine.last.json["messages"][0]["content"] == "cut \ufffd here"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            {"error": {"message": "too long", "type": "BadRequestError", "param": "messages", "code": 400}},
            {"message": "too long", "type": "BadRequestError", "param": "messages", "code": "400"},
        ),
        (
            {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400},
            {"message": "too long", "type": "BadRequestError", "param": None, "code": "400"},
        ),
        (
            {"detail": "too long"},
            {
                "message": "the engine answered 400: too long",
                "type": "invalid_request_error",
                "param": None,
                "code": "upstream_error",
            },
        ),
    ],
    ids=["OpenAI", "older vLLM", "anything"],
)
async def test_refusal_of_the_engine_reaches_the_client_in_one_shape(
    gateway: Gateway, engine: FakeEngine, body: object, error: object
) -> None:
    engine.will(Refuses(400, body))
    answer = await gateway.chat()
    assert (answer.status, answer.error) == (400, error)


async def test_engine_that_refuses_our_own_key_is_not_the_clients_fault(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Refuses(401, {"error": {"message": "bad key"}}))
    assert (await gateway.chat()).status == 502


@pytest.mark.parametrize(("engine_status", "status"), [(500, 502), (503, 503), (504, 504)])
async def test_broken_engine_is_worth_another_try(
    gateway: Gateway, engine: FakeEngine, engine_status: int, status: int
) -> None:
    engine.will(Refuses(engine_status, {"error": {"message": "engine is dead"}}))
    answer = await gateway.chat()
    assert (answer.status, answer.error["type"]) == (status, "upstream_error")
    assert int(answer.headers["Retry-After"]) >= 1


async def test_engine_that_is_gone_is_worth_another_try(settings: GatewaySettings, engine: FakeEngine) -> None:
    known = settings.model_copy(update={"model": MODEL})
    async with running_gateway(known) as gateway:
        await engine.stop()
        answer = await gateway.chat(memory={"user_id": "u1"})
        assert (answer.status, answer.error["code"]) == (503, "unavailable")
        assert int(answer.headers["Retry-After"]) >= 1
        assert await gateway.queued_turns() == []


async def test_a_choice_without_a_message_passes_and_is_remembered_without_a_reply(
    gateway: Gateway, engine: FakeEngine
) -> None:
    body: dict[str, object] = {"choices": [{"message": None}]}
    engine.will(SendsBytes([orjson.dumps(body)]))
    answer = await gateway.chat(memory={"user_id": "u1"})
    assert {**answer.json, **body} == answer.json
    (turns,) = await gateway.queued_turns()
    assert said(turns) == [("user", "Hi.")]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/messages", "/v1/messages"),
        ("/memory/search", "/v1/memory/search"),
    ],
)
async def test_a_path_of_a_wrong_base_url_is_refused_with_the_path_that_was_meant(
    gateway: Gateway, path: str, meant: str
) -> None:
    answer = await gateway.post(path, {})
    assert (answer.status, answer.error["code"]) == (404, "not_found")
    assert f"Did you mean {meant}?" in answer.error["message"]


@pytest.mark.parametrize(("method", "path", "status"), [("GET", CHAT, 405), ("POST", "/v1/nothing", 404)])
async def test_wrong_route_is_an_openai_shaped_error(gateway: Gateway, method: str, path: str, status: int) -> None:
    answer = await (gateway.get(path) if method == "GET" else gateway.post(path, {}))
    assert (answer.status, set(answer.error)) == (status, {"message", "type", "param", "code"})


LOCAL = [
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "/etc/passwd.png",
    "ftp://h/a.png",
    " file:///a.png",
    "s3://b/a.png",
]
FETCHED = ["https://example.com/a.png", "HTTP://example.com/a.png", "data:image/png;base64,AA=="]
KINDS = ["image_url", "video_url", "audio_url"]


def part_of(kind: str, url: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": [{"type": kind, kind: url}]}]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("url", LOCAL)
@pytest.mark.parametrize("is_wrapped", [True, False])
async def test_a_chat_that_names_a_file_is_refused(
    gateway: Gateway, engine: FakeEngine, kind: str, url: str, is_wrapped: bool
) -> None:
    answer = await gateway.post(CHAT, part_of(kind, {"url": url} if is_wrapped else url))

    assert (answer.status, answer.error["param"]) == (400, f"messages[0].content[0].{kind}")
    assert engine.received == []


@pytest.mark.parametrize("url", FETCHED)
async def test_a_url_of_the_web_or_of_data_reaches_the_engine(gateway: Gateway, engine: FakeEngine, url: str) -> None:
    asked = part_of("image_url", {"url": url})
    assert (await gateway.post(CHAT, asked)).status == 200
    assert engine.last.json["messages"] == asked["messages"]


@pytest.mark.parametrize("url", LOCAL)
async def test_the_other_apis_refuse_it_too(gateway: Gateway, engine: FakeEngine, url: str) -> None:
    picture = {"type": "image", "source": {"type": "url", "url": url}}
    message = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": [picture]}]}
    response = {
        "model": MODEL,
        "input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}],
    }
    assert (await gateway.post("/v1/messages", message)).status == 400
    assert (await gateway.post("/v1/responses", response)).status == 422
    assert (await gateway.post("/v1/conversations", {"items": response["input"]})).status == 422
    assert engine.received == []
