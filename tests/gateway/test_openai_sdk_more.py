"""The ``openai`` SDK's further ways to ask: parsed answers, raw responses, embeddings, completions."""

import asyncio
from collections.abc import AsyncGenerator

import orjson
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from gateway.settings import GatewaySettings
from tests.fakes.streaming_engine import MODEL, FakeEngine, Says, SendsBytes
from tests.gateway.running import Gateway

HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi."}]
MEMORY = {"memory": {"user_id": "u1"}}


class City(BaseModel):
    """What the model is to give."""

    city: str


@pytest.fixture
async def sdk(gateway: Gateway) -> AsyncGenerator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=gateway.url + "/v1", api_key="unused", max_retries=0) as client:
        yield client


def _json(body: object) -> SendsBytes:
    return SendsBytes([orjson.dumps(body)])


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


async def test_streaming_response(sdk: AsyncOpenAI) -> None:
    create = sdk.chat.completions.with_streaming_response.create
    async with create(model=MODEL, messages=HI, stream=True, extra_body=MEMORY) as response:
        lines = [line async for line in response.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert "write_event_id" in lines[-2]


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
    engine.will(_json({"object": "list", "model": MODEL, "data": [one], "usage": usage}))
    answer = await sdk.embeddings.create(model=MODEL, input="x", encoding_format="float")
    assert answer.data[0].embedding == [0.5, -1.0]
    assert engine.last.path == "embeddings"


async def test_completions(sdk: AsyncOpenAI, engine: FakeEngine) -> None:
    choice = {"index": 0, "text": " there", "finish_reason": "stop", "logprobs": None}
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": MODEL}
    engine.will(_json({**head, "choices": [choice]}))
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
