"""The real ``openai`` SDK against the gateway, sent over real HTTP."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator

import openai
import orjson
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, Cuts, FakeEngine, Hangs, Refuses, Says, SendsBytes
from tests.gateway.running import Gateway, running_gateway, said

HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi."}]
MEMORY = {"memory": {"user_id": "u1"}}
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}


class City(BaseModel):
    """What the model is to give."""

    city: str


@pytest.fixture
async def sdk(gateway: Gateway) -> AsyncGenerator[AsyncOpenAI]:
    """The SDK, which does not retry."""
    async with AsyncOpenAI(base_url=gateway.url + "/v1", api_key="unused", max_retries=0) as client:
        yield client


async def test_json(sdk: AsyncOpenAI, store: FakeStore) -> None:
    store.finds = [memory("m1", "The user likes tea.")]
    answer = await sdk.chat.completions.create(model=MODEL, messages=HI, extra_body=MEMORY)
    assert answer.choices[0].message.content == "Hello."
    assert answer.usage is not None
    assert answer.usage.total_tokens == 10
    assert answer._request_id is not None  # pyright: ignore[reportPrivateUsage] - the SDK's documented name
    told = (answer.model_extra or {})["memory"]
    assert told["retrieved"] == ["m1"]
    assert told["write_event_id"].startswith("evt_")


async def test_the_sdks_own_user_field_names_the_user_of_a_chat_that_asks_for_memory(
    sdk: AsyncOpenAI, store: FakeStore
) -> None:
    await sdk.chat.completions.create(model=MODEL, messages=HI, user="u7", extra_body={"memory": {}})
    assert store.searches[0].namespace.user_id == "u7"


async def _streamed(sdk: AsyncOpenAI, *, usage: bool) -> list[ChatCompletionChunk]:
    options = {"include_usage": True} if usage else {}
    stream = await sdk.chat.completions.create(
        model=MODEL, messages=HI, stream=True, extra_body={**MEMORY, "stream_options": options}
    )
    return [chunk async for chunk in stream]


@pytest.mark.parametrize("usage", [True, False], ids=["with usage", "without usage"])
async def test_stream(sdk: AsyncOpenAI, engine: FakeEngine, gateway: Gateway, *, usage: bool) -> None:
    engine.will(Says(pieces=["Hel", "lo."]))
    chunks = await _streamed(sdk, usage=usage)
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "Hello."
    last = chunks[-1]
    assert (bool(last.choices), last.usage is not None) == (not usage, usage)
    assert (last.model_extra or {})["memory"]["write_event_id"].startswith("evt_")
    assert [said(turns) for turns in await gateway.queued_turns()] == [[("user", "Hi."), ("assistant", "Hello.")]]


async def test_tools(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Says(tool_calls=[CALL], finish_reason="tool_calls"), Says("Rain."))
    first = await sdk.chat.completions.create(model=MODEL, messages=HI, tools=[WEATHER], extra_body=MEMORY)
    calls = first.choices[0].message.tool_calls or []
    assert [call.type == "function" and call.function.arguments for call in calls] == ['{"city": "Oslo"}']
    assert engine.last.json["tools"] == [WEATHER]
    result: ChatCompletionMessageParam = {"role": "tool", "tool_call_id": "c1", "content": "Rain."}
    messages = [*HI, first.choices[0].message, result]
    second = await sdk.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER], extra_body=MEMORY)  # pyright: ignore
    assert second.choices[0].message.content == "Rain."
    assert engine.last.json["messages"][1]["tool_calls"] == [CALL]


async def test_streamed_tools(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Says(tool_calls=[CALL], finish_reason="tool_calls"))
    async with sdk.chat.completions.stream(model=MODEL, messages=HI, tools=[WEATHER], extra_body=MEMORY) as stream:
        answer = await stream.get_final_completion()
    calls = answer.choices[0].message.tool_calls or []
    assert [call.function.arguments for call in calls] == ['{"city": "Oslo"}']


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (400, openai.BadRequestError),
        (404, openai.NotFoundError),
        (422, openai.UnprocessableEntityError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
async def test_error_of_the_engine(
    sdk: AsyncOpenAI, engine: FakeEngine, status: int, raised: type[openai.APIStatusError]
) -> None:
    engine.will(Refuses(status, {"error": {"message": "because", "type": "T", "param": "p", "code": "c"}}))
    with pytest.raises(raised, match="because") as caught:
        await sdk.chat.completions.create(model=MODEL, messages=HI)
    assert caught.value.request_id is not None
    assert (caught.value.param, caught.value.code) == ("p", "c")


async def test_error_in_mid_stream(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Cuts("Hel"))
    with pytest.raises(openai.APIError, match="the connection to the engine was lost"):
        await _streamed(sdk, usage=False)


async def test_error_of_ours_is_typed(sdk: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await sdk.chat.completions.create(model=MODEL, messages=HI, extra_body={"memory": {"colour": "red"}})
    assert caught.value.code == "unknown_parameter"
    assert caught.value.param == "memory.colour"


async def test_unknown_key(settings: GatewaySettings) -> None:
    digest = hashlib.sha256(b"right").hexdigest()
    async with running_gateway(settings, api_keys=f"acme:{digest}") as gateway:
        async with AsyncOpenAI(base_url=gateway.url + "/v1", api_key="wrong", max_retries=0) as client:
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()
        async with AsyncOpenAI(base_url=gateway.url + "/v1", api_key="right", max_retries=0) as client:
            assert [model.id async for model in client.models.list()] == [MODEL]


async def test_closing_a_stream_aborts_the_engine(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Hangs("Hel"))
    stream = await sdk.chat.completions.create(model=MODEL, messages=HI, stream=True, extra_body=MEMORY)
    await anext(stream)
    await stream.close()
    await engine.until_running(0)
    assert engine.aborted == 1


async def test_answer_is_parsed_into_a_model(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Says('{"city": "Oslo"}'))
    answer = await sdk.chat.completions.parse(model=MODEL, messages=HI, response_format=City, extra_body=MEMORY)
    assert answer.choices[0].message.parsed == City(city="Oslo")
    assert engine.last.json["response_format"]["json_schema"]["schema"]["properties"] == {
        "city": {"title": "City", "type": "string"}
    }


async def test_stream_is_parsed_into_a_model(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Says(pieces=['{"city":', ' "Oslo"}']))
    async with sdk.chat.completions.stream(model=MODEL, messages=HI, response_format=City, extra_body=MEMORY) as stream:
        answer = await stream.get_final_completion()
    assert answer.choices[0].message.parsed == City(city="Oslo")


async def test_raw_response_has_our_headers(sdk: AsyncOpenAI) -> None:
    raw = await sdk.chat.completions.with_raw_response.create(
        model=MODEL, messages=HI, extra_headers={"X-Client-Request-Id": "mine"}
    )
    assert (raw.headers["x-client-request-id"], raw.headers["x-request-id"]) == ("mine", raw.request_id)
    assert int(raw.headers["openai-processing-ms"]) >= 0
    assert raw.parse().choices[0].message.content == "Hello."


async def test_unknown_fields_pass_both_ways(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    engine.will(Says(extra={"kv_transfer_params": {"a": 1}}))
    extra = {**MEMORY, "chat_template_kwargs": {"enable_thinking": False}}
    answer = await sdk.chat.completions.create(model=MODEL, messages=HI, logprobs=True, extra_body=extra)
    assert (answer.model_extra or {})["kv_transfer_params"] == {"a": 1}
    assert engine.last.json["chat_template_kwargs"] == {"enable_thinking": False}
    assert engine.last.json["logprobs"] is True


async def test_embeddings(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    one = {"object": "embedding", "index": 0, "embedding": [0.5, -1.0]}
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    engine.will(SendsBytes([orjson.dumps({"object": "list", "model": MODEL, "data": [one], "usage": usage})]))
    answer = await sdk.embeddings.create(model=MODEL, input="x", encoding_format="float")
    assert answer.data[0].embedding == [0.5, -1.0]
    assert engine.last.path == "embeddings"


async def test_completions(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    choice = {"index": 0, "text": " there", "finish_reason": "stop", "logprobs": None}
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL}
    engine.will(SendsBytes([orjson.dumps({**head, "choices": [choice]})]))
    answer = await sdk.completions.create(model=MODEL, prompt="Hello")
    assert answer.choices[0].text == " there"


async def test_sync_client_streams(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Says(pieces=["Hel", "lo."]))

    def ask() -> str:
        with OpenAI(base_url=gateway.url + "/v1", api_key="unused", max_retries=0) as client:
            chunks = client.chat.completions.create(model=MODEL, messages=HI, stream=True, extra_body=MEMORY)
            return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)

    assert await asyncio.to_thread(ask) == "Hello."


async def test_retry_after_an_overload_is_the_sdks(
    gateway: Gateway, engine: FakeEngine, settings: GatewaySettings
) -> None:
    """The SDK's own retries work with our statuses and headers: the second try is answered."""
    await engine.stop()

    async def come_back() -> None:
        await asyncio.sleep(0.3)
        await engine.start()

    back = asyncio.create_task(come_back())
    async with AsyncOpenAI(base_url=gateway.url + "/v1", api_key="unused", max_retries=3) as client:
        answer = await client.chat.completions.create(model=MODEL, messages=HI)
    await back
    assert answer.choices[0].message.content == "Hello."
