"""The fields of a Responses request: carried under their names in chat, or refused by name."""

from typing import Any, TypeAlias

import pytest

from gateway.responses.requests import read_request
from gateway.responses.to_chat import chat_fields
from gateway.responses.tools import offered_tools
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, Unprocessable

Object: TypeAlias = dict[str, Any]


def asked(**fields: object) -> Object:
    return {"model": "m", "input": "Hi.", **fields}


def translated(**fields: Any) -> Json:
    """The chat that answers the request."""
    request = read_request(asked(**fields))
    return chat_fields(request, request.items, offered_tools(request.tools, request.items), limit_field="max_tokens")


FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True, "description": "d"}
OTHER = {"type": "function", "name": "g"}
SCHEMA = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}


CARRIED: list[tuple[Object, Object]] = [
    ({"max_output_tokens": 5}, {"max_tokens": 5}),
    ({"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5, "top_p": 0.9}),
    ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
    ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
    ({"text": {"verbosity": "low"}}, {"verbosity": "low"}),
    ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
    ({"text": {"format": {"type": "text"}}}, {}),
    (
        {"text": {"format": SCHEMA}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
            }
        },
    ),
    (
        {"tools": [FUNCTION], "parallel_tool_calls": False},
        {
            "tools": [{"type": "function", "function": {k: v for k, v in FUNCTION.items() if k != "type"}}],
            "parallel_tool_calls": False,
        },
    ),
    ({"include": ["message.output_text.logprobs"], "top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
    ({"user": "u", "safety_identifier": "s"}, {"user": "u", "safety_identifier": "s"}),
    ({"top_k": 5, "chat_template_kwargs": {"a": 1}}, {"top_k": 5, "chat_template_kwargs": {"a": 1}}),
    ({"metadata": {"a": "b"}, "store": False, "truncation": "disabled", "max_tool_calls": 3}, {}),
    ({"background": False, "conversation": None, "prompt": None}, {}),
]


@pytest.mark.parametrize(("fields", "chat"), CARRIED, ids=[",".join(fields) for fields, _ in CARRIED])
def test_fields_go_to_the_engine_under_their_names_in_chat(fields: Object, chat: Object) -> None:
    body = translated(**fields)
    assert body == {"model": "m", "messages": [{"role": "user", "content": "Hi."}], **chat}


@pytest.mark.parametrize(
    ("choice", "chat", "names"),
    [
        ("required", "required", ["f", "g", "c"]),
        ({"type": "function", "name": "g"}, {"type": "function", "function": {"name": "g"}}, ["f", "g", "c"]),
        ({"type": "custom", "name": "c"}, {"type": "function", "function": {"name": "c"}}, ["f", "g", "c"]),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]},
            "required",
            ["g"],
        ),
    ],
    ids=["a word", "a function", "a custom tool", "allowed tools"],
)
def test_the_choice_among_tools_is_carried(choice: object, chat: object, names: list[str]) -> None:
    body: Any = translated(tools=[FUNCTION, OTHER, {"type": "custom", "name": "c"}], tool_choice=choice)
    assert (body["tool_choice"], [tool["function"]["name"] for tool in body["tools"]]) == (chat, names)


REFUSED: list[tuple[Object, str]] = [
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"tools": [{"type": [None, None]}]}, "tools[0].type"),
    ({"tools": [OTHER, {"type": "web_search_preview"}]}, "tools[1].type"),
    ({"tools": [{"type": "mcp", "server_label": "s"}]}, "tools[0].type"),
    ({"tools": [{**OTHER, "defer_loading": True}]}, "tools[0].defer_loading"),
    ({"tools": [{**OTHER, "output_schema": {}}]}, "tools[0].output_schema"),
    ({"tools": [OTHER], "tool_choice": {"type": "function", "name": "no"}}, "tool_choice"),
    ({"tools": [OTHER], "tool_choice": {"type": "web_search"}}, "tool_choice"),
    ({"conversation": "conv_1", "previous_response_id": "resp_1"}, "conversation"),
    ({"prompt": {"id": "p"}}, "prompt"),
    ({"truncation": "auto"}, "truncation"),
    ({"context_management": [{"type": "compaction"}]}, "context_management"),
    ({"moderation": {"model": "m"}}, "moderation"),
    ({"include": ["web_search_call.action.sources"]}, "include"),
    ({"reasoning": {"summary": "long"}}, "reasoning.summary"),
    ({"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
    ({"messages": [{"role": "user", "content": "x"}]}, "messages"),
    ({"max_tokens": 5}, "max_tokens"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"n": 2}, "n"),
    ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    ({"input": [{"type": "computer_call_output", "call_id": "c"}]}, "input[0].type"),
    ({"input": [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]}, "input[0].encrypted_content"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
        "input[0].content[0].file_id",
    ),
    ({"input": [{"role": "user", "content": [{"type": "input_video", "url": "u"}]}]}, "input[0].content[0]"),
    ({"input": [{"role": "assistant", "content": "x", "phase": "commentary"}]}, "input[0].phase"),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input"),
    ({"input": []}, "input"),
    ({"input": [{"role": "user", "content": "x", "type": False}]}, "input[0].type"),
]


@pytest.mark.parametrize(("fields", "param"), REFUSED, ids=str)
def test_what_no_engine_can_be_given_is_refused_by_name(fields: Object, param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        translated(**fields)
    assert (refused.value.http_status, refused.value.param) == (400, param)


MALFORMED: list[Object] = [
    {"input": 5},
    {"input": ["x"]},
    {"input": [{"role": "user"}]},
    {"input": [{"role": "user", "content": [{"type": "input_text", "text": 5}]}]},
    {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}]},
    {"max_output_tokens": 0},
    {"tools": [{"type": "function", "name": "f", "defer_loading": 0}]},
    {"tools": [{"type": "function", "name": "f", "strict": 0}]},
    {"stream_options": {"include_obfuscation": 0}},
    {"stream": "yes"},
    {"metadata": {"a": 1}},
    {"model": None},
]


@pytest.mark.parametrize("fields", MALFORMED, ids=str)
def test_a_malformed_field_is_named(fields: Object) -> None:
    with pytest.raises(Unprocessable) as refused:
        translated(**fields)
    assert (refused.value.param or "").startswith(next(iter(fields)))
