"""Real clients, the gateway and a real vLLM with the tiny model: what the fakes of other tests stand for.

The frameworks are imported where they run: every process that collects the tests would import them for seconds.
"""

from collections.abc import AsyncGenerator
from pathlib import Path

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam
from pydantic import SecretStr

from tests.contract.conftest import TinyEngine
from tests.fakes.real_store import real_store
from tests.fakes.spans import Spans, collected_spans
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway

pytestmark = pytest.mark.engine
HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "My locker code is 482."}]
LONG = "The harbour lies in the north. " * 200
MEMORY = {"memory": {"user_id": "u1"}}


@pytest.fixture
async def spans() -> AsyncGenerator[Spans]:
    with collected_spans() as collected:
        yield collected


@pytest.fixture
async def gateway(spans: Spans, tiny_engine: TinyEngine, redis_url: str, tmp_path: Path) -> AsyncGenerator[Gateway]:
    """A gateway that traces, on the real store, before the real engine."""
    del spans
    async with real_store(redis_url, tmp_path) as store:
        settings = settings_for(
            redis_url,
            engine_url=tiny_engine.openai_url,
            inference_url=tiny_engine.launcher_url,
            store_url=store,
            model=None,
        )
        async with running_gateway(settings) as running:
            yield running


@pytest.fixture
async def sdk(gateway: Gateway) -> AsyncGenerator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=gateway.url + "/v1", api_key="unused", max_retries=0) as client:
        yield client


async def test_openai_chats_with_memory(sdk: AsyncOpenAI, tiny_engine: TinyEngine, spans: Spans) -> None:
    answer = await sdk.chat.completions.create(model=tiny_engine.model, messages=HI, max_tokens=32, extra_body=MEMORY)
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert (answer.model_extra or {})["memory"]["write_event_id"].startswith("evt_")
    call = spans.one(f"chat {tiny_engine.model}").attributes
    assert call["gen_ai.usage.input_tokens"] == answer.usage.prompt_tokens


async def test_openai_streams_with_usage(sdk: AsyncOpenAI, tiny_engine: TinyEngine) -> None:
    stream = await sdk.chat.completions.create(
        model=tiny_engine.model,
        messages=HI,
        max_tokens=32,
        stream=True,
        stream_options={"include_usage": True},
        extra_body=MEMORY,
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert chunks[-1].usage is not None
    assert "memory" in (chunks[-1].model_extra or {})


async def test_openai_completes_and_lists(sdk: AsyncOpenAI, tiny_engine: TinyEngine) -> None:
    assert tiny_engine.model in [model.id async for model in sdk.models.list()]
    completed = await sdk.completions.create(model=tiny_engine.model, prompt="Hello", max_tokens=4)
    assert completed.choices[0].finish_reason in {"length", "stop"}


async def test_refusal_of_the_engine_reaches_the_client(sdk: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no-such-model") as refused:
        await sdk.chat.completions.create(model="no-such-model", messages=HI)
    assert refused.value.code == "model_not_found"


async def test_anthropic_reads_that_a_chat_is_beyond_the_window(gateway: Gateway, tiny_engine: TinyEngine) -> None:
    async with AsyncAnthropic(base_url=gateway.url, api_key="unused", max_retries=0) as client:
        with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > \d+ maximum"):
            await client.messages.create(
                model=tiny_engine.model, messages=[{"role": "user", "content": LONG}], max_tokens=32
            )


async def test_chat_over_the_window_is_read_first(sdk: AsyncOpenAI, tiny_engine: TinyEngine) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": LONG}, *HI]
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.chat.completions.create(model=tiny_engine.model, messages=messages, max_tokens=32)
    assert refused.value.code == "context_length_exceeded"
    options = {"mode": "off", "long_context": "auto"}
    answer = await sdk.chat.completions.create(
        model=tiny_engine.model, messages=messages, max_tokens=32, extra_body={"memory": options}
    )
    (part,) = (answer.model_extra or {})["memory"]["long_context"]["parts"]
    assert part["message_index"] == 0
    assert part["llm_calls"] == part["chunks"] > 1


async def test_langchain_invokes_and_streams(gateway: Gateway, tiny_engine: TinyEngine) -> None:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(
        model=tiny_engine.model,
        base_url=gateway.url + "/v1",
        api_key=SecretStr("unused"),
        extra_body={**MEMORY, "max_tokens": 32},
    )
    assert (await model.ainvoke("My locker code is 482.")).content
    assert "".join([str(chunk.content) async for chunk in model.astream("My locker code is 482.")])


async def test_pydantic_ai_runs(gateway: Gateway, tiny_engine: TinyEngine) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=gateway.url + "/v1", api_key="unused")
    agent = Agent(OpenAIChatModel(tiny_engine.model, provider=provider), model_settings={"max_tokens": 32})
    assert (await agent.run("My locker code is 482.")).output
