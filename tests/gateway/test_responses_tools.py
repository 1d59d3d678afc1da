"""The tools of a response: an engine gets functions for them, and a call becomes the item of its tool again."""

from typing import Any, TypeAlias

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from gateway.responses.assembly import Assembly
from gateway.responses.items import items_of
from gateway.responses.requests import read_request
from gateway.responses.to_chat import chat_fields, messages_of
from gateway.responses.tools import offered_tools, read_tools, shown_tools
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest

Object: TypeAlias = dict[str, Any]
CUSTOM: Object = {"type": "custom", "name": "apply_patch", "description": "Edits files."}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch"'}
CLOSE: Object = {"type": "function", "name": "close", "description": "Closes it.", "parameters": {"type": "object"}}
TOOLSET = {"type": "namespace", "name": "agents", "description": "Agents.", "tools": [CLOSE, CUSTOM]}
SHELL = {"type": "local_shell"}
SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
ALL: list[Any] = [CLOSE, {**CUSTOM, "format": GRAMMAR}, TOOLSET, SHELL, SEARCH]
NAMES = st.text("abcdefgh_", min_size=1, max_size=70)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def functions(tools: list[Any], *items: Object) -> dict[str, Any]:
    """The functions that the engine gets, by their names."""
    request = read_request({"model": "m", "input": [{"role": "user", "content": "Hi."}, *items], "tools": tools})
    body: Any = chat_fields(request, request.items, offered_tools(request.tools, request.items), limit_field="n")
    return {tool["function"]["name"]: tool["function"] for tool in body.get("tools", ())}


def answered(tools: list[Any], name: str, arguments: str, *, size: int = 3) -> tuple[Json, list[Json]]:
    """The item of a call of that function, streamed in pieces of this size, and its events."""
    made = Assembly(lambda prefix, place: f"{prefix}_{place}", tools=offered_tools(read_tools(tools), ()))
    head: Json = {"index": 0, "id": "call_1", "function": {"name": name, "arguments": ""}}
    events = made.feed({}, {"tool_calls": [head]})
    for start in range(0, len(arguments), size):
        piece: Json = {"index": 0, "function": {"arguments": arguments[start : start + size]}}
        events += made.feed({}, {"tool_calls": [piece]})
    events += made.feed({"finish_reason": "tool_calls"}, {})
    return made.output[0], events


def called_again(item: Json, *more: Object) -> Any:
    """The engine's call for an item that the client sends back."""
    messages: Any = messages_of(items_of([item, *more]), None)
    [call] = messages[0]["tool_calls"]
    return call


def test_every_tool_of_the_client_becomes_a_function() -> None:
    found = functions(ALL)
    assert list(found) == ["close", "apply_patch", "agents__close", "agents__apply_patch", "local_shell", "tool_search"]
    assert found["agents__close"] == {"name": "agents__close", **{k: CLOSE[k] for k in ("description", "parameters")}}
    assert found["apply_patch"]["parameters"]["required"] == ["input"]
    assert GRAMMAR["definition"] in found["apply_patch"]["description"]
    assert found["tool_search"]["parameters"] == SEARCH["parameters"]


@pytest.mark.parametrize(
    ("name", "arguments", "fields"),
    [
        ("close", '{"a":1}', {"type": "function_call", "name": "close", "arguments": '{"a":1}'}),
        ("unheard_of", "{}", {"type": "function_call", "name": "unheard_of", "arguments": "{}"}),
        (
            "agents__close",
            "{}",
            {"type": "function_call", "name": "close", "namespace": "agents", "arguments": "{}"},
        ),
        ("apply_patch", '{"input":"*** x"}', {"type": "custom_tool_call", "name": "apply_patch", "input": "*** x"}),
        (
            "agents__apply_patch",
            '{"input":""}',
            {"type": "custom_tool_call", "name": "apply_patch", "namespace": "agents", "input": ""},
        ),
        (
            "tool_search",
            '{"query":"git"}',
            {"type": "tool_search_call", "execution": "client", "arguments": {"query": "git"}},
        ),
        (
            "local_shell",
            '{"command":["ls","-l"],"timeout_ms":5}',
            {
                "type": "local_shell_call",
                "action": {"type": "exec", "command": ["ls", "-l"], "env": {}, "timeout_ms": 5},
            },
        ),
    ],
    ids=["function", "unknown", "namespace", "custom", "custom in a namespace", "tool search", "shell"],
)
def test_a_call_becomes_the_item_of_its_tool_and_the_engines_call_again(
    name: str, arguments: str, fields: Object
) -> None:
    item, _ = answered(ALL, name, arguments)
    assert {key: item[key] for key in item if key not in {"id", "call_id", "status"}} == fields
    call = called_again(item)
    assert (call["id"], call["function"]["name"]) == ("call_1", name)
    assert orjson.loads(call["function"]["arguments"]) == orjson.loads(arguments)


@given(TEXTS, st.integers(1, 5))
def test_the_input_of_a_custom_tool_survives_the_way_there_and_back(text: str, size: int) -> None:
    arguments = orjson.dumps({"input": text}).decode()
    item, events = answered([CUSTOM], "apply_patch", arguments, size=size)
    assert item["input"] == text
    assert "".join(str(event["delta"]) for event in events if "delta" in event) == text
    assert orjson.loads(called_again(item)["function"]["arguments"]) == {"input": text}


@given(NAMES, NAMES)
def test_a_tool_of_a_namespace_keeps_its_name_however_long(namespace: str, name: str) -> None:
    tools = [{"type": "namespace", "name": namespace, "tools": [{"type": "function", "name": name}]}]
    [flat] = functions(tools)
    assert len(flat) <= 64
    item, _ = answered(tools, flat, "{}")
    assert (item["namespace"], item["name"]) == (namespace, name)
    assert called_again(item)["function"]["name"] == flat


@pytest.mark.parametrize(("arguments", "text"), [("*** Begin", "*** Begin"), ('{"input":"cut o', "cut o"), ("", "")])
def test_a_custom_input_that_is_not_json_or_was_cut_off_is_kept(arguments: str, text: str) -> None:
    assert answered([CUSTOM], "apply_patch", arguments)[0]["input"] == text


@pytest.mark.parametrize("name", list(functions(ALL)))
def test_the_events_of_every_call_are_the_public_apis(name: str) -> None:
    _, events = answered(ALL, name, '{"input":"x"}')
    for number, event in enumerate(events):
        TypeAdapter[Any](ResponseStreamEvent).validate_python({**event, "sequence_number": number})
    kinds = [str(event["type"]) for event in events]
    assert (kinds[0], kinds[-1]) == ("response.output_item.added", "response.output_item.done")


def test_pictures_of_outputs_follow_the_outputs_of_all_calls_of_the_answer() -> None:
    calls: list[Any] = [
        {"type": "function_call", "call_id": name, "name": "view", "arguments": "{}"} for name in ("a", "b")
    ]
    picture = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "original"}
    returned: list[Any] = [
        {"type": "function_call_output", "call_id": "a", "output": [picture, {"type": "input_text", "text": "1 × 1"}]},
        {"type": "function_call_output", "call_id": "b", "output": "none"},
    ]
    messages: Any = messages_of(items_of([*calls, *returned]), None)
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user"]
    assert messages[1]["content"] == [{"type": "text", "text": "1 × 1"}]
    heading, shown = messages[-1]["content"]
    assert "a" in heading["text"]
    assert shown == {"type": "image_url", "image_url": {"url": picture["image_url"], "detail": "high"}}


def test_tools_that_a_search_has_found_are_offered_from_then_on() -> None:
    call: Object = {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "git"}}
    found = {"type": "namespace", "name": "git", "tools": [{**CLOSE, "defer_loading": True}]}
    output: Object = {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [found]}
    assert list(functions([SEARCH])) == ["tool_search"]
    assert list(functions([SEARCH], call, output)) == ["tool_search", "git__close"]
    messages: Any = messages_of(items_of([call, output]), None)
    assert orjson.loads(messages[-1]["content"]) == {"tools": ["git"]}


def test_a_web_search_without_the_web_is_left_out_and_the_response_shows_that() -> None:
    given: list[Any] = [CLOSE, {"type": "web_search", "external_web_access": False}]
    tools = read_tools(given)
    assert [tool["type"] for tool in shown_tools(tools)] == ["function"]


@pytest.mark.parametrize(
    "tools",
    [
        [{"type": "web_search"}],
        [{"type": "web_search", "external_web_access": True}],
        [{"type": "tool_search"}],
        [{"type": "tool_search", "execution": "server"}],
        [{**CUSTOM, "format": {"type": "grammar", "syntax": "ebnf", "definition": "x"}}],
        [{**CUSTOM, "defer_loading": True}],
        [{"type": "function", "name": "agents__close"}, TOOLSET],
    ],
    ids=["web", "web access", "search", "their search", "another grammar", "deferred", "two of a name"],
)
def test_tools_that_nobody_here_runs_are_refused(tools: list[Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        functions(tools)
    assert str(refused.value.param).startswith("tools")
