"""Claude Code's requests, replayed in the shape that they have on the wire."""

from collections.abc import AsyncGenerator, Callable

import orjson
import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore
from tests.fakes.streaming_engine import FakeEngine, Says, SendsBytes
from tests.gateway.messages_api import claude_code as agent
from tests.gateway.messages_api.test_answer_translation import DONE, blocks_of, called, chunk
from tests.gateway.running import Answer, Gateway, running_gateway, said

THINKS_AND_CALLS = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "List the "}),
    chunk({"reasoning_content": "files."}),
    chunk({"content": "I look."}),
    chunk({"tool_calls": [{"index": 0, **called("call_1", "Bash", "")}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"comm'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": 'and": "ls"}'}}]}),
    chunk({}, "tool_calls"),
    b'data: {"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}}\n\n',
    DONE,
]


@pytest.fixture
async def it(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway whose operator lets the user of ``metadata`` suffice for memory: Claude Code sends no field of ours."""
    async with running_gateway(settings, memory_for_users=True) as gateway:
        yield gateway


async def asked(it: Gateway, body: object, *, session: str = agent.SESSIONS[0]) -> Answer:
    """One request; none is a 4xx."""
    answer = await it.post(agent.PATH, body, headers={**agent.HEADERS, "X-Claude-Code-Session-Id": session})
    assert answer.status == 200, answer.raw
    return answer


def content_of(answer: Answer) -> list[agent.Object]:
    """The blocks of a streamed message, put together as a client does."""
    return blocks_of([orjson.loads(raw.partition(b"\ndata: ")[2]) for raw in answer.events])


async def test_a_tool_loop_with_thinking_runs_to_its_end(it: Gateway, engine: FakeEngine) -> None:
    engine.will(SendsBytes(THINKS_AND_CALLS, "text/event-stream"), Says("Two files."))
    messages = [agent.prompt("Which files are there?")]
    first = content_of(await asked(it, agent.request(messages)))
    assert [block["type"] for block in first] == ["thinking", "text", "tool_use"]
    assert (first[0]["thinking"], first[2]["input"]) == ("List the files.", {"command": "ls"})
    messages += [{"role": "assistant", "content": first}, agent.result("call_1", "a.py\nb.py")]
    second = await asked(it, agent.request(messages))
    assert [block["text"] for block in content_of(second)] == ["Two files."]
    *_, prompt, step, result, reminder = engine.last.json["messages"]
    assert [part["text"] for part in prompt["content"]] == [agent.REMINDER, "Which files are there?"]
    assert step == {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "List the files.",
        "tool_calls": [called("call_1", "Bash", '{"command":"ls"}')],
    }
    assert result == {"role": "tool", "tool_call_id": "call_1", "content": "a.py\nb.py"}
    assert reminder == {"role": "user", "content": agent.REMINDER}


async def test_the_system_prompt_reaches_the_engine_without_the_billing_block(it: Gateway, engine: FakeEngine) -> None:
    await asked(it, agent.request([agent.prompt("Hi.")]))
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
    await asked(it, agent.request([agent.prompt("I use fish.")]))
    (turns,) = await it.queued_turns()
    assert said(turns) == [("user", "I use fish."), ("assistant", "Hello.")]


async def test_a_step_of_a_tool_loop_recalls_for_the_users_question(
    it: Gateway, store: FakeStore, engine: FakeEngine
) -> None:
    call = {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": "ls"}}
    messages = [agent.prompt("Which files?"), {"role": "assistant", "content": [call]}]
    await asked(it, agent.request([*messages, agent.result("call_1", "No.", is_error=True)]))
    assert [search.query for search in store.searches] == ["Which files?"]
    assert engine.last.json["messages"][-2]["content"] == "The tool failed:\n\nNo."


async def test_a_header_turns_memory_on_without_the_setting_and_names_the_user(
    gateway: Gateway, store: FakeStore
) -> None:
    body = agent.request([agent.prompt("Hi.")])
    await gateway.post(agent.PATH, body, headers=agent.HEADERS)
    assert store.searches == []
    await gateway.post(agent.PATH, body, headers={**agent.HEADERS, "X-Memory-User-Id": "ada"})
    assert store.searches[0].namespace.user_id == "ada"


async def test_a_title_in_a_schema_is_asked_for_without_tools(it: Gateway, engine: FakeEngine) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    engine.will(Says('{"title": "Files"}'))
    body = agent.request(
        [{"role": "user", "content": "Name this session."}],
        tools=[],
        temperature=1,
        thinking={"type": "disabled"},
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    assert [block["text"] for block in content_of(await asked(it, body))] == ['{"title": "Files"}']
    assert engine.last.json["response_format"]["json_schema"]["schema"] == schema
    assert "tools" not in engine.last.json


async def test_a_picture_in_a_tools_result_reaches_the_engine_and_is_not_the_users_question(
    it: Gateway, engine: FakeEngine, store: FakeStore
) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    call = {"type": "tool_use", "id": "call_1", "name": "Read", "input": {"path": "a.png"}}
    messages = [
        agent.prompt("What is in a.png?"),
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": [picture]}]},
    ]
    await asked(it, agent.request(messages))
    parts = engine.last.json["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    assert "call_1" in parts[0]["text"]
    assert parts[1]["image_url"]["url"] == "data:image/png;base64,aGk="
    assert [search.query for search in store.searches] == ["What is in a.png?"]
