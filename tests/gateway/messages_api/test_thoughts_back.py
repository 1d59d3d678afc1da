"""Engines that demand the thoughts before a tool call back: a tool loop of the real ``anthropic`` SDK goes on."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import orjson
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import Message, MessageParam, ToolParam, ToolUseBlock

from memloop.wire.memory import Source
from tests.fakes.streaming_engine import MODEL, FakeEngine, SendsBytes
from tests.gateway.running import Gateway

THOUGHT = "I need the weather \u2014 of Oslo."
WEATHER: ToolParam = {"name": "weather", "input_schema": {"type": "object"}}
HI: list[MessageParam] = [{"role": "user", "content": "How is the weather?"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
BEFORE = {"content": "Let me see.", "tool_calls": [CALL]}
Script = Callable[[str], SendsBytes]


def whole(field: str) -> SendsBytes:
    choice = {"index": 0, "message": {"role": "assistant", field: THOUGHT, **BEFORE}, "finish_reason": "tool_calls"}
    return SendsBytes([orjson.dumps({"id": "x", "object": "chat.completion", "model": MODEL, "choices": [choice]})])


def streamed(field: str) -> SendsBytes:
    deltas: list[dict[str, Any]] = [
        *({field: piece} for piece in (THOUGHT[:9], THOUGHT[9:])),
        {"content": "Let me see."},
        {"tool_calls": [{"index": 0, **CALL}]},
    ]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    events = [b"data: " + orjson.dumps({"model": MODEL, "choices": [choice]}) + b"\n\n" for choice in choices]
    return SendsBytes([*events, b"data: [DONE]\n\n"], "text/event-stream")


@pytest.fixture
async def sdk(gateway: Gateway) -> AsyncGenerator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=gateway.url, api_key="unused", max_retries=0) as client:
        yield client


async def first_step(sdk: AsyncAnthropic, *, stream: bool, thinks: bool) -> Message:
    more: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if thinks else {}
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 2048, "messages": HI, "tools": [WEATHER], **more}
    if not stream:
        return Message.model_validate(await sdk.messages.create(**asked))
    async with sdk.messages.stream(**asked) as events:
        return await events.get_final_message()


@pytest.mark.parametrize("thinks", [False, True], ids=["not asked for", "asked for"])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("script", [whole, streamed], ids=["whole", "streamed"])
async def test_the_second_step_of_a_tool_loop_has_the_thought_of_the_first(
    sdk: AsyncAnthropic, engine: FakeEngine, script: Script, field: str, *, thinks: bool
) -> None:
    engine.will(script(field))
    answer = await first_step(sdk, stream=script is streamed, thinks=thinks)
    kinds = [block.type for block in answer.content]
    assert kinds == (["thinking", "text", "tool_use"] if thinks else ["text", "redacted_thinking", "tool_use"])
    assert [block.id for block in answer.content if isinstance(block, ToolUseBlock)] == ["c1"]

    result: MessageParam = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "Rain"}],
    }
    turns: list[MessageParam] = [*HI, {"role": "assistant", "content": answer.content}, result]
    await sdk.messages.create(model=MODEL, max_tokens=2048, messages=turns, tools=[WEATHER])
    said = engine.last.json["messages"][1]
    assert (said["reasoning_content"], said["content"]) == (THOUGHT, "Let me see.")
    assert said["tool_calls"][0]["id"] == "c1"


async def test_a_thought_without_a_call_stays_hidden_and_is_not_remembered(
    gateway: Gateway, engine: FakeEngine
) -> None:
    message = {"role": "assistant", "content": "Hello.", "reasoning_content": THOUGHT}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    engine.will(SendsBytes([orjson.dumps({"id": "x", "model": MODEL, "choices": [choice]})]))
    body = {"model": MODEL, "max_tokens": 9, "messages": HI, "memory": {"user_id": "u1"}}
    answer = await gateway.post("/v1/messages", body)
    assert [block["type"] for block in answer.json["content"]] == ["text"]
    [turns] = await gateway.queued_turns()
    assert [Source(role=turn.role, content=turn.content) for turn in turns] == [
        Source(role="user", content="How is the weather?"),
        Source(role="assistant", content="Hello."),
    ]


@pytest.mark.parametrize("data", ["EmwKAhgB", "memloop.!", "memloop./w==", "memloop."])
async def test_a_block_that_is_not_ours_is_refused_by_its_place(gateway: Gateway, data: str) -> None:
    blocks = [{"type": "redacted_thinking", "data": data}, {"type": "text", "text": "Hm."}]
    turns = [*HI, {"role": "assistant", "content": blocks}, {"role": "user", "content": "Go on."}]
    answer = await gateway.post("/v1/messages", {"model": MODEL, "max_tokens": 9, "messages": turns})
    assert (answer.status, "messages.1.content.0" in answer.error["message"]) == (400, True)
