"""LangChain's ``ChatOpenAI`` and Pydantic AI's agents against the gateway, over real HTTP.

They are imported where they run: every process that collects the tests would import them for seconds.
"""

import json
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, FakeEngine, Object, Says
from tests.gateway.running import Gateway, said

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI
    from pydantic_ai import Agent

MEMORY = {"memory": {"user_id": "u1"}}


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}."


def _call(tool: str, /, **arguments: object) -> Says:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return Says(tool_calls=[{"id": "c1", "type": "function", "function": function}], finish_reason="tool_calls")


@pytest.fixture
def langchain(gateway: Gateway) -> "ChatOpenAI":
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=MODEL, base_url=gateway.url + "/v1", api_key=SecretStr("unused"), max_retries=0, extra_body=MEMORY
    )


async def test_langchain_invokes_with_memory(
    langchain: "ChatOpenAI", engine: FakeEngine, store: FakeStore, gateway: Gateway
) -> None:
    store.finds = [memory("m1", "The user likes tea.")]
    answer = await langchain.ainvoke("What do I drink?")
    assert answer.content == "Hello."
    assert "The user likes tea." in engine.last.json["messages"][0]["content"]
    assert [said(turns) for turns in await gateway.queued_turns()] == [
        [("user", "What do I drink?"), ("assistant", "Hello.")]
    ]


async def test_langchain_streams(langchain: "ChatOpenAI", engine: FakeEngine) -> None:
    engine.will(Says(pieces=["Hel", "lo."]))
    chunks = [chunk async for chunk in langchain.astream("Hi.", stream_usage=True)]
    assert "".join(str(chunk.content) for chunk in chunks) == "Hello."
    counted = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert [usage["total_tokens"] for usage in counted] == [10]


async def test_langchain_binds_tools(langchain: "ChatOpenAI", engine: FakeEngine) -> None:
    engine.will(_call("weather", city="Oslo"))
    armed = langchain.bind_tools([weather])  # pyright: ignore[reportUnknownMemberType] - bare dicts
    answer = await armed.ainvoke("How is the weather?")
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("weather", {"city": "Oslo"})]
    assert engine.last.json["tools"][0]["function"]["name"] == "weather"


@pytest.fixture
def agent(gateway: Gateway) -> "Agent[None, str]":
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=gateway.url + "/v1", api_key="unused")
    settings = OpenAIChatModelSettings(extra_body=MEMORY)
    return Agent(OpenAIChatModel(MODEL, provider=provider), model_settings=settings)


async def test_pydantic_ai_runs_with_memory(agent: "Agent[None, str]", engine: FakeEngine, store: FakeStore) -> None:
    store.finds = [memory("m1", "The user likes tea.")]
    result = await agent.run("What do I drink?")
    assert result.output == "Hello."
    assert "The user likes tea." in engine.last.json["messages"][0]["content"]


async def test_pydantic_ai_calls_a_tool_and_goes_on(agent: "Agent[None, str]", engine: FakeEngine) -> None:
    agent.tool_plain(weather)
    engine.will(_call("weather", city="Oslo"), Says("It rains."))
    result = await agent.run("How is the weather in Oslo?")
    assert result.output == "It rains."
    sent: list[Object] = engine.last.json["messages"]
    assert sent[-1]["role"] == "tool"
    assert sent[-1]["content"] == "Rain in Oslo."


async def test_pydantic_ai_streams(agent: "Agent[None, str]", engine: FakeEngine) -> None:
    engine.will(Says(pieces=["Hel", "lo."]))
    async with agent.run_stream("Hi.") as result:
        assert "".join([piece async for piece in result.stream_text(delta=True)]) == "Hello."
