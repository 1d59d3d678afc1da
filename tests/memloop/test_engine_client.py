from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import orjson
import pytest
from aiohttp import web
from pydantic import JsonValue

from memloop.ports import Prompt, Sampling
from memloop.profiles import load_profile
from memloop.wire.chat import ChatMessage, Json
from memloop.wire.errors import DependencyError, EngineError, MemloopError, Unavailable, UnreadableAnswer
from memloop.wire.memory import Usage
from memloop_clients import DialectName, EngineClient, Timeouts
from memloop_clients.engine import read_completion
from memloop_clients.replies import whole_reply
from tests.fakes.web_server import serving

PROMPT = Prompt((ChatMessage(role="user", content="hi"),), Sampling(max_tokens=7, temperature=0.5, top_p=0.9))
QUICK = Timeouts(connect_s=30, read_s=0.5, total_s=60)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answer(content: JsonValue = "hello", **message: object) -> Json:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return orjson.loads(orjson.dumps({"id": "c", "choices": [choice], "usage": usage}))


@asynccontextmanager
async def engine(
    handler: Handler, *, dialect: DialectName = "vllm", key: str | None = None, timeouts: Timeouts | None = None
) -> AsyncGenerator[EngineClient]:
    routes = [web.post("/v1/chat/completions", handler), web.get("/v1/models", handler)]
    async with (
        serving(routes) as url,
        EngineClient(f"{url}/v1", model="m", api_key=key, dialect=dialect, timeouts=timeouts or Timeouts()) as client,
    ):
        yield client


class Recording:
    """Answers hello and keeps the requests."""

    def __init__(self) -> None:
        self.bodies: list[Json] = []
        self.headers: list[dict[str, str]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(orjson.loads(await request.read()))
        self.headers.append(dict(request.headers))
        return web.json_response(answer())


def failing(status: int, body: object, headers: dict[str, str] | None = None) -> Handler:
    async def handle(_: web.Request) -> web.StreamResponse:
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        return web.Response(body=raw, status=status, headers=headers)

    return handle


async def raised(handler: Handler, *, timeouts: Timeouts | None = None) -> MemloopError:
    async with engine(handler, timeouts=timeouts) as client:
        with pytest.raises(DependencyError) as caught:
            await client.complete(PROMPT)
    return caught.value


async def test_a_prompt_becomes_openais_request_and_the_answer_a_completion() -> None:
    recording = Recording()
    async with engine(recording.handle, key="secret") as client:
        completion = await client.complete(PROMPT)
    assert (completion.content, completion.finish_reason) == ("hello", "stop")
    assert completion.usage == Usage(input_tokens=3, output_tokens=4, llm_calls=1)
    assert recording.headers[0]["Authorization"] == "Bearer secret"
    assert recording.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "hi"}],
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 7,
            "chat_template_kwargs": {"enable_thinking": False},
        }
    ]


async def test_tools_are_sent_with_their_choice() -> None:
    recording = Recording()
    async with engine(recording.handle) as client:
        await client.complete(load_profile("default").prompt("memory", conversation="c"))
    assert recording.bodies[0]["tool_choice"] == "required"
    assert recording.bodies[0]["chat_template_kwargs"] == {"enable_thinking": True}


async def test_one_connection_serves_several_models() -> None:
    recording = Recording()
    async with engine(recording.handle) as client:
        await client.of_model("other").complete(PROMPT)
        await client.complete(PROMPT)
    assert [body["model"] for body in recording.bodies] == ["other", "m"]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thinking_is_read_from_either_field(field: str) -> None:
    assert read_completion(answer("x", **{field: "because"})).reasoning == "because"


def test_tool_calls_are_read_with_missing_ids_and_object_arguments() -> None:
    calls = [{"id": None, "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]
    completion = read_completion(answer(None, tool_calls=calls))
    assert completion.content == ""
    [call] = completion.tool_calls
    assert call.id
    assert call.function.arguments == '{"a":1}'


def test_cut_arguments_are_handed_on_as_they_are() -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a'}}]
    assert read_completion(answer("", tool_calls=calls)).tool_calls[0].function.arguments == '{"a'


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": 3}])
def test_what_is_no_chat_completion_is_an_error(body: Json) -> None:
    with pytest.raises(UnreadableAnswer, match="not a chat completion"):
        read_completion(body)


@pytest.mark.parametrize(
    ("error", "status"), [("x", 502), ({"message": "x", "code": 429}, 429), ({"message": "x", "code": "y"}, 502)]
)
def test_an_error_that_comes_with_status_200_is_that_error(error: JsonValue, status: int) -> None:
    with pytest.raises(EngineError, match="x") as refused:
        read_completion({"error": error})
    assert refused.value.engine_status == status


def test_content_in_parts_is_the_text_of_its_text_parts() -> None:
    thought: JsonValue = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    assert (
        read_completion(answer([thought, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}])).content == "ab"
    )


async def test_a_refusal_of_the_engine_keeps_its_status_and_words() -> None:
    body = {"error": {"message": "messages: too many", "type": "x", "param": "messages", "code": "too_many"}}
    error = await raised(failing(400, body))
    assert (error.http_status, error.param, error.code) == (400, "messages", "too_many")
    assert error.message == "the engine answered 400: messages: too many"


@pytest.mark.parametrize(
    ("status", "ours"), [(404, 404), (422, 422), (429, 429), (401, 502), (403, 502), (500, 502), (503, 503), (504, 504)]
)
async def test_statuses_map_to_what_the_client_should_see(status: int, ours: int) -> None:
    assert (await raised(failing(status, {"message": "flat", "code": 17}))).http_status == ours


async def test_retry_after_is_passed_on() -> None:
    assert (await raised(failing(429, b"slow down", {"Retry-After": "3"}))).retry_after_s == 3
    assert (await raised(failing(429, b"", {"Retry-After": "inf"}))).retry_after_s == 24 * 3600
    assert (await raised(failing(503, b"", {"Retry-After": "nan"}))).retry_after_s == 0
    assert (await raised(failing(503, b"", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}))).retry_after_s is None


async def test_a_success_that_is_not_json_is_an_error() -> None:
    assert "not JSON" in (await raised(failing(200, b"<html>"))).message


async def test_a_success_that_is_no_object_is_an_error() -> None:
    assert "not a JSON object" in (await raised(failing(200, b"[]"))).message


async def test_an_engine_that_is_not_there_is_unavailable_and_its_address_stays_private() -> None:
    async with EngineClient("http://127.0.0.1:9/v1", model="m") as client:
        with pytest.raises(Unavailable) as caught:
            await client.complete(PROMPT)
    assert caught.value.message == "the engine cannot be reached"


async def test_a_raw_error_is_returned_not_raised() -> None:
    async with engine(failing(404, {"error": {"message": "no model"}})) as client, client.stream_raw(b"{}") as raw:
        error = await raw.error()
    assert (raw.status, error.http_status) == (404, 404)
    assert "no model" in error.message


async def test_the_readiness_check_reads_the_models() -> None:
    async with engine(failing(200, {"data": []})) as client:
        await client.check()
    async with engine(failing(500, b"dead")) as client:
        with pytest.raises(EngineError):
            await client.check()


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_a_reply_that_the_engine_broke_off_is_a_failure_and_no_reply(reason: str) -> None:
    body = answer("half a mem")
    body["choices"] = [{"message": {"content": "half a mem"}, "finish_reason": reason}]
    with pytest.raises(EngineError, match="ended its reply early"):
        read_completion(body)


def test_calls_in_openais_form_stay_the_object_itself() -> None:
    call: Json = {"id": "a", "type": "function", "function": {"name": "add_memory", "arguments": "{}"}}
    message: Json = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice: Json = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer: Json = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    assert whole_reply(answer) is answer
    message["tool_calls"] = [call, call]
    assert whole_reply(answer) is not answer
