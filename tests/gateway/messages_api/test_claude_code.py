"""Claude Code's requests, replayed in the shape that they have on the wire."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import orjson
import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore
from tests.fakes.streaming_engine import MODEL, FakeEngine, Says, SendsBytes
from tests.gateway.messages_api import claude_code as agent
from tests.gateway.running import Answer, Gateway, running_gateway, said

BASH_CALL = {"id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}
THINKS_AND_CALLS: list[agent.Object] = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_content": "List the "}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_content": "files."}}]},
    {"choices": [{"index": 0, "delta": {"content": "I look."}}]},
    {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "tool_calls": [
                        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": ""}}
                    ]
                },
            }
        ]
    },
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"comm'}}]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": 'and": "ls"}'}}]}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}},
]


@pytest.fixture
async def it(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway whose operator lets the user of ``metadata`` suffice for memory: Claude Code sends no field of ours."""
    async with running_gateway(settings.model_copy(update={"memory_for_users": True})) as gateway:
        yield gateway


async def asked(it: Gateway, body: object, *, session: str = agent.SESSIONS[0]) -> Answer:
    """One request; none is a 4xx."""
    answer = await it.post(agent.PATH, body, headers={**agent.HEADERS, "X-Claude-Code-Session-Id": session})
    assert answer.status == 200, answer.raw
    return answer


def content_of(answer: Answer) -> list[dict[str, Any]]:
    """The blocks of a streamed message, put together as a client does."""
    blocks: list[dict[str, Any]] = []
    events: list[agent.Object] = [orjson.loads(raw.partition(b"\ndata: ")[2]) for raw in answer.events]
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "json": ""})
        elif event["type"] == "content_block_delta":
            _add(blocks[int(event["index"])], event["delta"])
    for block in blocks:
        raw = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = orjson.loads(raw or "{}")
    return blocks


def _add(block: agent.Object, delta: agent.Object) -> None:
    if delta["type"] == "input_json_delta":
        block["json"] += delta["partial_json"]
    else:
        field = delta["type"].removesuffix("_delta")
        block[field] += delta[field]


def streamed(chunks: list[Any]) -> SendsBytes:
    """An engine's stream."""
    events = [b"data: " + orjson.dumps({"id": "c", "model": MODEL, **chunk}) + b"\n\n" for chunk in chunks]
    return SendsBytes([*events, b"data: [DONE]\n\n"], "text/event-stream")


async def test_a_tool_loop_with_thinking_runs_to_its_end(it: Gateway, engine: FakeEngine) -> None:
    engine.will(streamed(THINKS_AND_CALLS), Says("Two files."))
    user_id = agent.user_as_json(agent.SESSIONS[0])
    messages = [agent.prompt("Which files are there?")]
    first = content_of(await asked(it, agent.request(messages, user_id=user_id)))
    assert [block["type"] for block in first] == ["thinking", "text", "tool_use"]
    assert (first[0]["thinking"], first[2]["input"]) == ("List the files.", {"command": "ls"})
    messages += [{"role": "assistant", "content": first}, agent.result("call_1", "a.py\nb.py")]
    second = await asked(it, agent.request(messages, user_id=user_id))
    assert [block["text"] for block in content_of(second)] == ["Two files."]
    *_, prompt, called, result, reminder = engine.last.json["messages"]
    assert [part["text"] for part in prompt["content"]] == [agent.REMINDER, "Which files are there?"]
    assert called == {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "List the files.",
        "tool_calls": [{**BASH_CALL, "function": {"name": "Bash", "arguments": '{"command":"ls"}'}}],
    }
    assert result == {"role": "tool", "tool_call_id": "call_1", "content": "a.py\nb.py"}
    assert reminder == {"role": "user", "content": agent.REMINDER}


async def test_the_system_prompt_reaches_the_engine_without_the_billing_block(it: Gateway, engine: FakeEngine) -> None:
    await asked(it, agent.request([agent.prompt("Hi.")], user_id=agent.user_as_json(agent.SESSIONS[0])))
    system = engine.last.json["messages"][0]
    assert system["role"] == "system"
    assert system["content"].startswith("You are a coding agent.\n\nFollow the rules")
    assert b"cache_control" not in engine.last.raw
    assert engine.last.json["tools"][0]["function"]["parameters"] == agent.BASH["input_schema"]
    assert (engine.last.json["max_tokens"], engine.last.json["reasoning_effort"]) == (32000, "high")


@pytest.mark.parametrize("user_id", [agent.user_as_json, agent.user_as_text], ids=["JSON", "text"])
async def test_the_second_session_recalls_the_first(
    it: Gateway, engine: FakeEngine, store: FakeStore, user_id: Callable[[str], str]
) -> None:
    for session, text in zip(agent.SESSIONS, ("Our deploy command is make ship.", "How do we deploy?"), strict=True):
        await asked(it, agent.request([agent.prompt(text)], user_id=user_id(session)), session=session)
    assert {search.namespace.user_id for search in store.searches} == {f"account_{agent.ACCOUNT}"}
    assert [search.query for search in store.searches] == ["Our deploy command is make ship.", "How do we deploy?"]
    recalled = str(engine.last.json["messages"][-1]["content"])
    assert "Our deploy command is make ship." in recalled


async def test_what_the_agent_adds_to_a_message_is_not_remembered(it: Gateway) -> None:
    await asked(it, agent.request([agent.prompt("I use fish.")], user_id=agent.user_as_json(agent.SESSIONS[0])))
    (turns,) = await it.queued_turns()
    assert said(turns) == [("user", "I use fish."), ("assistant", "Hello.")]


async def test_a_step_of_a_tool_loop_recalls_for_the_users_question(
    it: Gateway, store: FakeStore, engine: FakeEngine
) -> None:
    user_id = agent.user_as_json(agent.SESSIONS[0])
    call = {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": "ls"}}
    messages = [agent.prompt("Which files?"), {"role": "assistant", "content": [call]}]
    await asked(it, agent.request([*messages, agent.result("call_1", "No.", is_error=True)], user_id=user_id))
    assert [search.query for search in store.searches] == ["Which files?"]
    assert engine.last.json["messages"][-2]["content"] == "The tool failed:\n\nNo."


async def test_a_header_turns_memory_on_without_the_setting_and_names_the_user(
    gateway: Gateway, store: FakeStore
) -> None:
    body = agent.request([agent.prompt("Hi.")], user_id=agent.user_as_json(agent.SESSIONS[0]))
    await gateway.post(agent.PATH, body, headers=agent.HEADERS)
    assert store.searches == []
    await gateway.post(agent.PATH, body, headers={**agent.HEADERS, "X-Memory-User-Id": "ada"})
    assert store.searches[0].namespace.user_id == "ada"


async def test_a_title_in_a_schema_is_asked_for_without_tools(it: Gateway, engine: FakeEngine) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    engine.will(Says('{"title": "Files"}'))
    body = agent.request(
        [{"role": "user", "content": "Name this session."}],
        user_id=agent.user_as_json(agent.SESSIONS[0]),
        tools=[],
        temperature=1,
        thinking={"type": "disabled"},
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    assert [block["text"] for block in content_of(await asked(it, body))] == ['{"title": "Files"}']
    assert engine.last.json["response_format"]["json_schema"]["schema"] == schema
    assert "tools" not in engine.last.json


async def test_a_picture_in_a_tools_result_reaches_the_engine(it: Gateway, engine: FakeEngine) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    call = {"type": "tool_use", "id": "call_1", "name": "Read", "input": {"path": "a.png"}}
    messages = [
        agent.prompt("What is in a.png?"),
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": [picture]}]},
    ]
    await asked(it, agent.request(messages, user_id=agent.user_as_json(agent.SESSIONS[0])))
    parts = engine.last.json["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    assert "call_1" in parts[0]["text"]
    assert parts[1]["image_url"]["url"] == "data:image/png;base64,aGk="


async def test_counts_for_the_context_view(it: Gateway) -> None:
    for body in (
        {"model": MODEL, "messages": [{"role": "user", "content": "foo"}], "tools": []},
        {"model": MODEL, "messages": [{"role": "user", "content": "foo"}], "tools": [agent.BASH]},
    ):
        answer = await it.post(agent.COUNT_PATH, body, headers=agent.HEADERS)
        assert (answer.status, set(answer.json)) == (200, {"input_tokens"})
