"""The real ``anthropic`` SDK against the gateway over real HTTP, in front of a scripted engine of chat completions."""

import asyncio
from collections.abc import AsyncGenerator

import anthropic
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import MessageParam, TextBlock, ThinkingBlock, ToolParam, ToolUseBlock

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, Cuts, FakeEngine, Hangs, Refuses, Says, SendsBytes
from tests.gateway.api_rig import ALICE_KEY, TWO_TENANTS
from tests.gateway.running import Gateway, running_gateway, said

HI: list[MessageParam] = [{"role": "user", "content": "Hi."}]
MEMORY = {"memory": {"user_id": "u1"}}
WEATHER: ToolParam = {
    "name": "weather",
    "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
OTHER_CALL = {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}


@pytest.fixture
async def sdk(gateway: Gateway) -> AsyncGenerator[AsyncAnthropic]:
    """The SDK, which does not retry."""
    async with AsyncAnthropic(base_url=gateway.url, api_key="unused", max_retries=0) as client:
        yield client


async def test_json(sdk: AsyncAnthropic, engine: FakeEngine) -> None:
    answer = await sdk.messages.create(model=MODEL, max_tokens=100, messages=HI, system="Be brief.")
    assert [block.text for block in answer.content if isinstance(block, TextBlock)] == ["Hello."]
    assert (answer.role, answer.model, answer.stop_reason, answer.stop_sequence) == (
        "assistant",
        MODEL,
        "end_turn",
        None,
    )
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 3)
    assert answer.id.startswith("msg_")
    assert (answer._request_id or "").startswith("req_")  # pyright: ignore[reportPrivateUsage] - the documented name
    assert engine.last.path == "chat/completions"
    assert engine.last.json == {
        "model": MODEL,
        "max_tokens": 100,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}],
    }


async def test_stream_helper_accumulates_the_answer_and_its_usage(sdk: AsyncAnthropic, engine: FakeEngine) -> None:
    engine.will(Says(pieces=["Hel", "lo."]))
    async with sdk.messages.stream(model=MODEL, max_tokens=10, messages=HI) as stream:
        pieces = [text async for text in stream.text_stream]
        answer = await stream.get_final_message()
    assert pieces == ["Hel", "lo."]
    assert (answer.stop_reason, answer.usage.input_tokens, answer.usage.output_tokens) == ("end_turn", 7, 3)
    assert engine.last.json["stream_options"] == {"include_usage": True}


async def test_tools_with_two_calls_at_once(sdk: AsyncAnthropic, engine: FakeEngine) -> None:
    engine.will(Says(tool_calls=[CALL, OTHER_CALL], finish_reason="tool_calls"), Says("Rain, sun."))
    first = await sdk.messages.create(model=MODEL, max_tokens=10, messages=HI, tools=[WEATHER])
    calls = [block for block in first.content if isinstance(block, ToolUseBlock)]
    assert first.stop_reason == "tool_use"
    assert [(call.id, call.name, call.input) for call in calls] == [
        ("c1", "weather", {"city": "Oslo"}),
        ("c2", "weather", {"city": "Rome"}),
    ]
    results: MessageParam = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "Rain."},
            {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "Sun."}]},
        ],
    }
    messages: list[MessageParam] = [*HI, {"role": "assistant", "content": first.content}, results]
    second = await sdk.messages.create(model=MODEL, max_tokens=10, messages=messages, tools=[WEATHER])
    assert [block.text for block in second.content if isinstance(block, TextBlock)] == ["Rain, sun."]
    asked = engine.last.json
    assert asked["tools"][0]["function"]["parameters"] == WEATHER["input_schema"]
    assert [(call["id"], call["function"]["name"]) for call in asked["messages"][1]["tool_calls"]] == [
        ("c1", "weather"),
        ("c2", "weather"),
    ]
    assert asked["messages"][2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "Rain."},
        {"role": "tool", "tool_call_id": "c2", "content": "Sun."},
    ]


REASONED = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","reasoning":"A gree"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"reasoning":"ting."}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


async def test_streamed_thinking_is_shown_to_a_client_that_asks_and_goes_back_to_the_engine(
    sdk: AsyncAnthropic, engine: FakeEngine
) -> None:
    engine.will(SendsBytes([REASONED], "text/event-stream"), Says())
    async with sdk.messages.stream(
        model=MODEL, max_tokens=2000, messages=HI, thinking={"type": "enabled", "budget_tokens": 1024}
    ) as opened:
        answer = await opened.get_final_message()
    thought = answer.content[0]
    assert isinstance(thought, ThinkingBlock)
    assert (thought.thinking, bool(thought.signature)) == ("A greeting.", True)
    messages: list[MessageParam] = [*HI, {"role": "assistant", "content": answer.content}, *HI]
    await sdk.messages.create(model=MODEL, max_tokens=10, messages=messages)
    sent = {"role": "assistant", "content": "Hello.", "reasoning_content": "A greeting."}
    assert engine.last.json["messages"][1] == sent


async def test_memory_of_one_session_is_recalled_in_the_next(
    sdk: AsyncAnthropic, engine: FakeEngine, store: FakeStore, gateway: Gateway
) -> None:
    first = await sdk.messages.create(
        model=MODEL, max_tokens=10, messages=[{"role": "user", "content": "I like tea."}], extra_body=MEMORY
    )
    told = (first.model_extra or {})["memory"]
    assert told["write_event_id"].startswith("evt_")
    assert [said(turns) for turns in await gateway.queued_turns()] == [
        [("user", "I like tea."), ("assistant", "Hello.")]
    ]
    store.finds = [memory("m1", "The user likes tea.")]
    second = await sdk.messages.create(model=MODEL, max_tokens=10, messages=HI, extra_body=MEMORY)
    assert (second.model_extra or {})["memory"]["retrieved"] == ["m1"]
    (asked,) = engine.last.json["messages"]
    recalled, _, question = asked["content"].rpartition("\n\n")
    assert "The user likes tea." in recalled
    assert "I like tea." in recalled  # the first session's turn, which waits to be decided on
    assert question == "Hi."


async def test_a_streams_memory_is_on_its_message_delta(sdk: AsyncAnthropic, gateway: Gateway) -> None:
    stream = await sdk.messages.create(model=MODEL, max_tokens=10, messages=HI, stream=True, extra_body=MEMORY)
    deltas = [event async for event in stream if event.type == "message_delta"]
    assert [(event.model_extra or {})["memory"]["write_event_id"][:4] for event in deltas] == ["evt_"]
    assert [said(turns) for turns in await gateway.queued_turns()] == [[("user", "Hi."), ("assistant", "Hello.")]]


async def test_metadata_alone_gives_no_memory(sdk: AsyncAnthropic, gateway: Gateway, engine: FakeEngine) -> None:
    answer = await sdk.messages.create(model=MODEL, max_tokens=10, messages=HI, metadata={"user_id": "u1"})
    assert "memory" not in (answer.model_extra or {})
    assert await gateway.queued_turns() == []
    assert engine.last.json["user"] == "u1"


@pytest.mark.parametrize(
    ("status", "raised", "kind"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error"),
        (404, anthropic.NotFoundError, "not_found_error"),
        (422, anthropic.BadRequestError, "invalid_request_error"),
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (503, anthropic.InternalServerError, "api_error"),
        (504, anthropic.InternalServerError, "timeout_error"),
    ],
)
async def test_error_of_the_engine(
    sdk: AsyncAnthropic, engine: FakeEngine, status: int, raised: type[anthropic.APIStatusError], kind: str
) -> None:
    engine.will(Refuses(status, {"error": {"message": "because", "type": "T", "param": "p", "code": "c"}}))
    with pytest.raises(raised, match="because") as caught:
        await sdk.messages.create(model=MODEL, max_tokens=10, messages=HI)
    assert (caught.value.type, caught.value.request_id is not None) == (kind, True)
    assert set(_body(caught.value)) == {"type", "error", "request_id"}


async def test_error_of_ours_names_the_field(sdk: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await sdk.messages.create(
            model=MODEL, max_tokens=10, messages=HI, extra_body={"memory": {"user_id": "u1", "colour": "red"}}
        )
    assert _body(caught.value)["error"]["details"] == {"error_code": "unknown_parameter", "param": "memory.colour"}
    assert caught.value.error_code == "unknown_parameter"


@pytest.mark.parametrize("body", [{}, MEMORY], ids=["without memory", "with memory"])
async def test_error_in_mid_stream(sdk: AsyncAnthropic, engine: FakeEngine, body: dict[str, object]) -> None:
    engine.will(Cuts("Hel"))
    with pytest.raises(anthropic.APIStatusError, match="the connection to the engine was lost") as caught:
        async with sdk.messages.stream(model=MODEL, max_tokens=10, messages=HI, extra_body=body) as stream:
            assert [text async for text in stream.text_stream] == ["Hel"]
    assert caught.value.type == "api_error"


@pytest.mark.parametrize("body", [{}, MEMORY], ids=["without memory", "with memory"])
async def test_an_answer_that_breaks_off_without_an_end_is_an_error(
    sdk: AsyncAnthropic, engine: FakeEngine, gateway: Gateway, body: dict[str, object]
) -> None:
    engine.will(SendsBytes([b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'], "text/event-stream"))
    with pytest.raises(anthropic.APIStatusError, match="before the answer was complete"):
        async with sdk.messages.stream(model=MODEL, max_tokens=10, messages=HI, extra_body=body) as stream:
            await stream.get_final_message()
    assert await gateway.queued_turns() == []


async def test_keys(settings: GatewaySettings) -> None:
    async with running_gateway(settings, api_keys=TWO_TENANTS) as gateway:
        async with AsyncAnthropic(base_url=gateway.url, api_key="wrong", max_retries=0) as sdk:
            with pytest.raises(anthropic.AuthenticationError) as caught:
                await sdk.messages.create(model=MODEL, max_tokens=10, messages=HI)
        async with AsyncAnthropic(base_url=gateway.url, api_key=ALICE_KEY, max_retries=0) as sdk:
            assert (await sdk.messages.create(model=MODEL, max_tokens=10, messages=HI)).type == "message"
        async with AsyncAnthropic(base_url=gateway.url, auth_token=ALICE_KEY, api_key=None, max_retries=0) as sdk:
            assert (await sdk.messages.create(model=MODEL, max_tokens=10, messages=HI)).type == "message"
    assert caught.value.type == "authentication_error"


@pytest.mark.parametrize("body", [{}, MEMORY], ids=["without memory", "with memory"])
async def test_closing_a_stream_aborts_the_engine_and_writes_nothing(
    sdk: AsyncAnthropic, engine: FakeEngine, gateway: Gateway, body: dict[str, object]
) -> None:
    engine.will(Hangs("Hel"))
    stream = await sdk.messages.create(model=MODEL, max_tokens=10, messages=HI, stream=True, extra_body=body)
    await anext(aiter(stream))
    await stream.close()
    await engine.until_running(0)
    assert (engine.aborted, await gateway.queued_turns()) == (1, [])


async def test_cancelling_a_call_aborts_the_engine(sdk: AsyncAnthropic, engine: FakeEngine) -> None:
    engine.will(Hangs())
    asking = asyncio.create_task(sdk.messages.create(model=MODEL, max_tokens=10, messages=HI))
    await engine.until_running(1)
    asking.cancel()
    await engine.until_running(0)
    assert engine.aborted == 1


async def test_token_count(sdk: AsyncAnthropic, engine: FakeEngine) -> None:
    short = await sdk.messages.count_tokens(model=MODEL, messages=HI)
    system = await sdk.messages.count_tokens(model=MODEL, messages=HI, system="word " * 100)
    tools = await sdk.messages.count_tokens(model=MODEL, messages=HI, tools=[WEATHER])
    assert 0 < short.input_tokens < tools.input_tokens < system.input_tokens
    assert system.input_tokens - short.input_tokens >= 100
    assert engine.received == []


async def test_the_beta_surface_is_answered_and_its_headers_are_ignored(
    sdk: AsyncAnthropic, engine: FakeEngine
) -> None:
    answer = await sdk.beta.messages.create(
        model=MODEL, max_tokens=10, messages=[{"role": "user", "content": "Hi."}], betas=["some-beta-2030-01-01"]
    )
    assert answer.content[0].type == "text"
    assert engine.last.json["messages"] == HI


def _body(error: anthropic.APIStatusError) -> dict[str, dict[str, object]]:
    assert isinstance(error.body, dict)
    return error.body  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


async def test_a_route_that_is_not_served_is_refused_in_anthropics_form(sdk: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as refused:
        await sdk.messages.batches.list()
    assert refused.value.body == {
        "type": "error",
        "error": {
            "type": "not_found_error",
            "message": "Not Found: GET /v1/messages/batches",
            "details": {"error_code": "not_found"},
        },
        "request_id": refused.value.request_id,
    }
