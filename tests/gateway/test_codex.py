"""Codex's requests, replayed in the shape that they have on the wire."""

from collections.abc import AsyncGenerator
from typing import Any

import orjson
import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore
from tests.fakes.streaming_engine import MODEL, FakeEngine, Says, SendsBytes
from tests.gateway import codex as agent
from tests.gateway.running import Answer, Gateway, running_gateway, said

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch\n"


@pytest.fixture
async def it(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway whose operator lets the user whom a client names suffice for memory: Codex sends no field of ours."""
    async with running_gateway(settings, memory_for_users=True) as gateway:
        yield gateway


async def asked(it: Gateway, items: list[agent.Object], *, session: str = agent.SESSIONS[0]) -> Answer:
    """One request; none is a 4xx."""
    answer = await it.post(agent.PATH, agent.request(items, session=session), headers=agent.headers(session))
    assert answer.status == 200, answer.raw
    return answer


def output_of(answer: Answer) -> list[agent.Object]:
    """The items of the answer, as Codex takes them: each from its last event."""
    events: list[agent.Object] = [orjson.loads(raw.partition(b"\ndata: ")[2]) for raw in answer.events]
    assert events[-1]["type"] == "response.completed"
    return [event["item"] for event in events if event["type"] == "response.output_item.done"]


def calls(*named: tuple[str, object]) -> SendsBytes:
    """An engine's stream: a thought, a text and calls."""
    deltas: list[Any] = [{"reasoning_content": "Look "}, {"reasoning_content": "first."}, {"content": "Looking."}]
    for index, (name, arguments) in enumerate(named):
        function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
        deltas.append({"tool_calls": [{"index": index, "id": f"call_{index}", "function": function}]})
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    events = [
        b"data: " + orjson.dumps({"id": "c", "model": MODEL, "choices": [choice]}) + b"\n\n" for choice in choices
    ]
    return SendsBytes([*events, b"data: [DONE]\n\n"], "text/event-stream")


async def test_a_tool_loop_with_reasoning_runs_to_its_end(it: Gateway, engine: FakeEngine) -> None:
    engine.will(
        calls(("exec_command", {"cmd": "ls"}), ("apply_patch", {"input": PATCH}), ("multi_agent_v1__close_agent", {})),
        Says("Done."),
    )
    items = agent.turn("Add a.txt.")
    first = output_of(await asked(it, items))
    assert [item["type"] for item in first] == [
        "reasoning",
        "message",
        "function_call",
        "custom_tool_call",
        "function_call",
    ]
    assert first[3]["input"] == PATCH
    assert (first[4]["namespace"], first[4]["name"]) == ("multi_agent_v1", "close_agent")
    items += map(agent.sent_back, first)
    items += [
        {"type": "function_call_output", "id": "fco_1", "call_id": "call_0", "output": "b.txt"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "Success."},
        {"type": "function_call_output", "call_id": "call_2", "output": "closed"},
    ]
    [answer] = output_of(await asked(it, items))
    assert answer["content"][0]["text"] == "Done."
    *_, called, one, two, three = engine.last.json["messages"]
    assert (called["reasoning_content"], called["content"]) == ("Look first.", "Looking.")
    names = [call["function"]["name"] for call in called["tool_calls"]]
    assert names == ["exec_command", "apply_patch", "multi_agent_v1__close_agent"]
    assert [tool["content"] for tool in (one, two, three)] == ["b.txt", "Success.", "closed"]


async def test_the_engine_gets_the_tools_as_functions_and_nothing_of_codex(it: Gateway, engine: FakeEngine) -> None:
    await asked(it, agent.turn("Hi."))
    body = engine.last.json
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names[0] == "exec_command"
    assert names[-4:] == ["apply_patch", "multi_agent_v1__spawn_agent", "multi_agent_v1__close_agent", "tool_search"]
    assert {tool["type"] for tool in body["tools"]} == {"function"}
    assert not {"client_metadata", "include", "store", "reasoning", "input"} & body.keys()
    assert (body["parallel_tool_calls"], body["reasoning_effort"], body["verbosity"]) == (True, "medium", "low")
    assert [message["role"] for message in body["messages"]] == ["system", "user", "user"]


async def test_the_second_session_recalls_the_first(it: Gateway, engine: FakeEngine, store: FakeStore) -> None:
    for session, text in zip(agent.SESSIONS, ("Our deploy command is make ship.", "How do we deploy?"), strict=True):
        await asked(it, agent.turn(text), session=session)
    assert {search.namespace.user_id for search in store.searches} == {f"codex_{agent.INSTALLATION}"}
    assert [search.query for search in store.searches] == ["Our deploy command is make ship.", "How do we deploy?"]
    assert "Our deploy command is make ship." in str(engine.last.json["messages"][-1]["content"])


async def test_headers_name_user_and_repository_without_the_setting(gateway: Gateway, store: FakeStore) -> None:
    body = agent.request(agent.turn("Hi."), session=agent.SESSIONS[0])
    named = {**agent.headers(agent.SESSIONS[0]), "X-Memory-User-Id": "ada", "X-Memory-Agent-Id": "team/app"}
    await gateway.post(agent.PATH, body, headers=agent.headers(agent.SESSIONS[0]))
    assert store.searches == []
    await gateway.post(agent.PATH, body, headers=named)
    namespace = store.searches[0].namespace
    assert (namespace.user_id, namespace.agent_id) == ("ada", "team/app")


async def test_what_codex_adds_to_the_conversation_is_not_remembered(it: Gateway) -> None:
    await asked(it, agent.turn("I use fish."))
    (turns,) = await it.queued_turns()
    assert said(turns) == [("user", "I use fish."), ("assistant", "Hello.")]


async def test_a_picture_that_a_tool_returned_is_not_the_users_question(
    it: Gateway, engine: FakeEngine, store: FakeStore
) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "view_image", "arguments": '{"path":"a.png"}'}
    picture = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "high"}
    output = {"type": "function_call_output", "call_id": "c", "output": [picture]}
    await asked(it, [*agent.turn("What is in a.png?"), call, output])
    assert [search.query for search in store.searches] == ["What is in a.png?"]
    assert engine.last.json["messages"][-1]["content"][1]["image_url"]["url"] == picture["image_url"]


async def test_local_shell_calls_of_earlier_versions_are_carried(it: Gateway, engine: FakeEngine) -> None:
    action = {"type": "exec", "command": ["bash", "-lc", "ls"], "timeout_ms": None, "working_directory": "/srv/app"}
    call = {"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "status": "completed", "action": action}
    output = {"type": "function_call_output", "call_id": "c", "output": '{"output":"a.txt","metadata":{"exit_code":0}}'}
    await asked(it, [*agent.turn("Which files?"), call, output])
    called = engine.last.json["messages"][-2]["tool_calls"][0]["function"]
    assert orjson.loads(called["arguments"]) == {"command": ["bash", "-lc", "ls"], "working_directory": "/srv/app"}
