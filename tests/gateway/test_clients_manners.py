"""What public clients send and expect by default, as they were seen: each test names the client that needs it."""

from typing import Any, TypeAlias

import pytest
from backports import zstd

from memloop_service.http import json_text
from tests.fakes.streaming_engine import MODEL, FakeEngine, Says
from tests.gateway.running import Gateway, said

Object: TypeAlias = dict[str, Any]
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
HI = {"role": "user", "content": "Hi."}


def called(call_id: str) -> Object:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def output(call_id: str, text: str = "x") -> Object:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def roles(engine: FakeEngine) -> list[str]:
    """The roles of the newest chat; a tool's message with its call's id, the assistant's with those of its calls."""
    found: list[str] = []
    for message in engine.last.json["messages"]:
        ids = [call["id"] for call in message.get("tool_calls", ())]
        found.append(":".join(filter(None, (message["role"], *ids, message.get("tool_call_id")))))
    return found


ORDERS: dict[str, tuple[list[Object], list[str]]] = {
    "a message between": ([HI, called("a"), HI, output("a")], ["user", "assistant:a", "tool:a", "user"]),
    "two calls, outputs the other way round": (
        [HI, called("a"), called("b"), output("b"), output("a")],
        ["user", "assistant:a:b", "tool:b", "tool:a"],
    ),
    "one call after the other": (
        [HI, called("a"), output("a"), called("b"), output("b")],
        ["user", "assistant:a", "tool:a", "assistant:b", "tool:b"],
    ),
    "output before its call": ([HI, output("a"), called("a")], ["user", "assistant:a", "tool:a"]),
    "both twice": ([HI, called("a"), output("a"), called("a"), output("a")], ["user", "assistant:a", "tool:a"]),
}


@pytest.mark.parametrize("order", ORDERS)
async def test_outputs_go_right_behind_their_calls(order: str, gateway: Gateway, engine: FakeEngine) -> None:
    """semantic-kernel, strands."""
    items, expected = ORDERS[order]
    assert (await gateway.post(RESPONSES, {"model": MODEL, "input": items})).status == 200
    assert roles(engine) == expected


async def test_a_call_repeated_behind_a_stored_response_counts_once(gateway: Gateway, engine: FakeEngine) -> None:
    """strands with stored responses."""
    engine.will(Says(tool_calls=[CALL], finish_reason="tool_calls"))
    tools: list[Object] = [{"type": "function", "name": "f", "parameters": {}}]
    first = (await gateway.post(RESPONSES, {"model": MODEL, "input": "Hi.", "tools": tools})).json
    for items in ([HI, output("a")], [HI, called("a"), output("a")]):
        body: Object = {"model": MODEL, "input": items, "tools": tools, "previous_response_id": first["id"]}
        assert (await gateway.post(RESPONSES, body)).status == 200
        assert roles(engine) == ["user", "assistant:a", "tool:a", "user"]


async def test_items_are_named_by_their_ids(gateway: Gateway, engine: FakeEngine) -> None:
    """@ai-sdk/openai: it repeats the conversation by references to the stored items."""
    engine.will(Says("Rex."))
    first = (await gateway.post(RESPONSES, {"model": MODEL, "input": "My dog?"})).json
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    items = [{"role": "user", "content": "My dog?"}, reference, {"role": "user", "content": "Again?"}]
    assert (await gateway.post(RESPONSES, {"model": MODEL, "input": items})).status == 200
    assert [message["content"] for message in engine.last.json["messages"]] == ["My dog?", "Rex.", "Again?"]
    body: Object = {"model": MODEL, "input": [{"id": reference["id"]}, HI], "previous_response_id": first["id"]}
    assert (await gateway.post(RESPONSES, body)).status == 200
    assert [message["content"] for message in engine.last.json["messages"]] == ["My dog?", "Rex.", "Hi."]


@pytest.mark.parametrize("item_id", ["msg_1", "x", "", "msg_" + "0" * 36])
async def test_a_reference_to_nothing_is_refused_by_name(item_id: str, gateway: Gateway) -> None:
    items = [{"type": "item_reference", "id": item_id}]
    refused = await gateway.post(RESPONSES, {"model": MODEL, "input": items})
    assert (refused.status, refused.error["param"], refused.error["code"]) == (400, "input[0].id", "item_not_found")
    refused = await gateway.post("/v1/conversations", {"items": items})
    assert (refused.status, refused.error["param"]) == (400, "items[0].type")


async def test_a_summary_of_the_reasoning_is_given_to_who_asks(gateway: Gateway, engine: FakeEngine) -> None:
    """@ai-sdk/openai, langchain-openai, agno, pydantic-ai."""
    odd = {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": None}]}
    engine.will(Says("Yes.", extra=odd))
    body: Object = {"model": MODEL, "input": "Hi.", "reasoning": {"summary": "auto"}, "stream": True}
    answer = await gateway.post(RESPONSES, body)
    kinds = [raw.partition(b"\n")[0].removeprefix(b"event: response.").decode() for raw in answer.events]
    assert "reasoning_summary_part.added" in kinds
    assert "reasoning_summary_text.delta" in kinds
    assert b'"summary":[{"type":"summary_text","text":"Hm.' in answer.events[-1]


async def test_tools_that_are_loaded_later_are_sent_at_once(gateway: Gateway, engine: FakeEngine) -> None:
    """The Claude Agent SDK."""
    tool: Object = {
        "name": "f",
        "input_schema": {},
        "defer_loading": True,
        "allowed_callers": ["direct", "code_execution"],
    }
    body: Object = {"model": MODEL, "max_tokens": 9, "messages": [HI], "tools": [tool]}
    assert (await gateway.post(MESSAGES, body)).status == 200
    assert [sent["function"]["name"] for sent in engine.last.json["tools"]] == ["f"]


async def test_a_thread_is_refused_so_that_tool_runners_send_all_messages(gateway: Gateway) -> None:
    """anthropic 2.14 and npm 1.14, ``beta.messages.tool_runner``."""
    body: Object = {"model": MODEL, "max_tokens": 9, "messages": [HI], "thread": {"type": "new"}}
    refused = await gateway.post(MESSAGES, body)
    details = refused.json["error"]["details"]
    assert (refused.status, details["error_code"]) == (400, "thread_unsupported_request")
    assert details["unsupported"] == ["thread"]


async def test_a_messages_stream_begins_with_an_estimate_of_the_prompt(gateway: Gateway) -> None:
    """@langchain/anthropic, autogen: they report what ``message_start`` says."""
    words = {"role": "user", "content": "How many tokens does this have? " * 20}
    body: Object = {"model": MODEL, "max_tokens": 9, "messages": [words], "stream": True}
    events = (await gateway.post(MESSAGES, body)).raw
    assert b'"input_tokens":0' not in events
    assert b'"input_tokens":7,' in events  # the engine's own count, at the end


async def test_text_blocks_have_no_nulls(gateway: Gateway) -> None:
    """@ai-sdk/anthropic: its schema has an array or nothing."""
    for stream in (False, True):
        body: Object = {"model": MODEL, "max_tokens": 9, "messages": [HI], "stream": stream}
        assert b"citations" not in (await gateway.post(MESSAGES, body)).raw


@pytest.mark.parametrize(
    "reply",
    ["<think>Secret.</think>\n\nRex.", "Secret.</think>Rex.", "[THINK]Secret.[/THINK]Rex.", "Rex.\n<think>Secret."],
)
async def test_thoughts_are_not_remembered(reply: str, gateway: Gateway, engine: FakeEngine) -> None:
    """Engines without a parser for the thoughts of their model."""
    engine.will(Says(reply))
    await gateway.chat("My dog?", memory={"user_id": "u1"})
    [turns] = await gateway.queued_turns()
    assert said(turns) == [("user", "My dog?"), ("assistant", "Rex.")]


async def test_thoughts_of_an_added_conversation_are_not_remembered(gateway: Gateway) -> None:
    messages = [HI, {"role": "assistant", "content": "<think>Secret.</think>Hello."}]
    assert (await gateway.post("/v1/memory/add", {"user_id": "u1", "messages": messages})).status == 202
    [turns] = await gateway.queued_turns()
    assert said(turns) == [("user", "Hi."), ("assistant", "Hello.")]


@pytest.mark.parametrize("path", ["/v1/chat/completions", MESSAGES])
async def test_a_packed_chat_is_answered(path: str, gateway: Gateway, engine: FakeEngine) -> None:
    """Codex packs with zstd, tracing exporters and proxies with gzip."""
    body = {"model": MODEL, "messages": [HI], "max_tokens": 5}
    headers = {"Content-Encoding": "zstd", "Content-Type": "application/json"}
    sent = zstd.compress(json_text(body))
    async with gateway.http.post(gateway.url + path, data=sent, headers=headers) as answer:
        assert answer.status == 200
    assert engine.last.json["messages"] == [HI]
