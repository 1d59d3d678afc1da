"""What becomes of each block and field of a message's request: property tests, then one example of each refusal."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.engine import LoopModel
from gateway.engine.engines import Engines
from gateway.engine.window import Window
from gateway.messages.requests import CreateMessage
from gateway.messages.translation import translated
from memloop.chunking import EstimatingSplitter
from memloop.profiles import load_profile
from memloop.wire.errors import InvalidRequest
from memloop_clients.endpoints import ENDPOINTS
from memloop_service.http import validated

Object: TypeAlias = dict[str, Any]
MODEL = LoopModel(
    id="m",
    engine_model="m",
    engines=Engines([None]),  # pyright: ignore[reportArgumentType] - translating asks no engine
    window=Window(load_profile("default"), EstimatingSplitter(), "m"),
    splitter=EstimatingSplitter(),
    label="m",
)
OPENAI = replace(MODEL, endpoint=ENDPOINTS["openai"])
_TEXT_FIELDS = ("title", "source", "url", "data", "text", "content", "thinking")
LIGHT = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)

TEXTS = st.text(min_size=1, max_size=12)
IDS = st.text("abcdefgh0123_-", min_size=1, max_size=8)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON_VALUES, max_size=3)
CACHE = st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}, {"cache_control": None}])


def _merged(block: Object, cache: Object) -> Object:
    return block | cache


def _ending(earlier: list[Object], last: Object) -> list[Object]:
    return [*earlier, last]


def _block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    made = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.builds(_merged, made, CACHE)


TEXT = _block("text", text=TEXTS)
IMAGE = _block(
    "image",
    source=st.one_of(
        st.fixed_dictionaries({"type": st.just("base64"), "media_type": st.just("image/png"), "data": IDS}),
        st.fixed_dictionaries({"type": st.just("url"), "url": IDS.map("https://x.example/{}".format)}),
    ),
)
DOCUMENT = _block(
    "document",
    title=TEXTS,
    source=st.one_of(
        st.fixed_dictionaries({"type": st.just("text"), "media_type": st.just("text/plain"), "data": TEXTS}),
        st.fixed_dictionaries({"type": st.just("base64"), "media_type": st.just("application/pdf"), "data": IDS}),
        st.fixed_dictionaries({"type": st.just("content"), "content": st.lists(TEXT | IMAGE, min_size=1, max_size=2)}),
    ),
)
FOUND = _block("search_result", title=TEXTS, source=TEXTS, content=st.lists(TEXT, min_size=1, max_size=2))
RESULT = _block(
    "tool_result",
    tool_use_id=IDS,
    content=TEXTS | st.lists(TEXT | IMAGE | DOCUMENT | FOUND, max_size=3),
    is_error=st.booleans(),
)
CALL = _block("tool_use", id=IDS, name=IDS, input=OBJECTS)
THOUGHT = st.fixed_dictionaries({"type": st.just("thinking"), "thinking": TEXTS, "signature": TEXTS})
USER = st.fixed_dictionaries(
    {"role": st.just("user"), "content": TEXTS | st.lists(TEXT | IMAGE | DOCUMENT | FOUND | RESULT, max_size=4)}
)
ASSISTANT = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": TEXTS | st.lists(TEXT | CALL | THOUGHT, max_size=4)}
)
SYSTEM = st.fixed_dictionaries({"role": st.just("system"), "content": TEXTS | st.lists(TEXT, min_size=1, max_size=2)})
MESSAGES = st.builds(_ending, st.lists(USER | ASSISTANT | SYSTEM, max_size=4), USER | SYSTEM)


def chat_of(request: Object, model: LoopModel = MODEL) -> Object:
    """The chat's fields, as the engine would get them."""
    return json.loads(translated(validated(CreateMessage, request), model.dialect).body.raw)


def request(**fields: object) -> Object:
    """A request with these fields."""
    return {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi."}], **fields}


def texts_in(value: Any) -> Iterator[str]:
    """All texts of blocks, pictures and files, in order; ids, names and inputs are looked at elsewhere."""
    if isinstance(value, str):
        yield value
    inner: list[Any] = cast(list[Any], value) if isinstance(value, list) else []
    if isinstance(value, dict):
        fields = cast(Object, value)
        inner = [fields[name] for name in _TEXT_FIELDS if name in fields]
    for part in inner:
        yield from texts_in(part)


def blocks_in(messages: list[Object]) -> list[Object]:
    """All blocks of the messages."""
    return [block for message in messages if not isinstance(message["content"], str) for block in message["content"]]


@LIGHT
@given(MESSAGES)
def test_every_text_picture_and_file_of_a_message_reaches_the_engine(messages: list[Object]) -> None:
    chat = translated(validated(CreateMessage, request(messages=messages)), MODEL.dialect)
    by_place: dict[int, list[Object]] = {}
    sent: list[Object] = json.loads(chat.body.raw)["messages"]
    for place, message in zip(chat.places, sent, strict=True):
        by_place.setdefault(place, []).append(message)
    for place, message in enumerate(messages):
        shown = json.dumps(by_place.get(place, []), ensure_ascii=False)
        missing = [
            text for text in texts_in(message["content"]) if json.dumps(text, ensure_ascii=False)[1:-1] not in shown
        ]
        assert missing == []


@LIGHT
@given(MESSAGES)
def test_every_tool_call_and_result_keeps_its_id_name_and_input(messages: list[Object]) -> None:
    blocks = blocks_in(messages)
    sent = chat_of(request(messages=messages))["messages"]
    calls = [call for message in sent for call in message.get("tool_calls") or ()]
    assert [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls] == [
        (block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"
    ]
    results = [message for message in sent if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == [
        block["tool_use_id"] for block in blocks if block["type"] == "tool_result"
    ]
    failed = [message["content"].startswith("The tool failed:") for message in results]
    assert failed == [block["is_error"] for block in blocks if block["type"] == "tool_result"]


@LIGHT
@given(MESSAGES)
def test_results_of_tools_stand_before_the_rest_of_their_message(messages: list[Object]) -> None:
    chat = translated(validated(CreateMessage, request(messages=messages)), MODEL.dialect)
    sent = json.loads(chat.body.raw)["messages"]
    for before, message, place, other in zip(sent, sent[1:], chat.places, chat.places[1:], strict=False):
        if message["role"] == "tool" and place == other:
            assert before["role"] == "tool"


@LIGHT
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.floats(0, 1),
            "top_p": st.floats(0, 1),
            "top_k": st.integers(1, 500),
            "stop_sequences": st.lists(TEXTS, min_size=1, max_size=3),
            "system": TEXTS | st.lists(TEXT, min_size=1, max_size=3),
            "metadata": st.fixed_dictionaries({"user_id": IDS}),
        },
    )
)
def test_every_option_that_a_chat_has_is_carried(options: Object) -> None:
    sent = chat_of(request(**options))
    assert sent["max_tokens"] == 10
    for name, other in (
        ("temperature", "temperature"),
        ("top_p", "top_p"),
        ("top_k", "top_k"),
        ("stop_sequences", "stop"),
    ):
        assert sent.get(other) == options.get(name)
    assert sent.get("user") == options.get("metadata", {}).get("user_id")
    system = options.get("system", [])
    expected = system if isinstance(system, str) else "\n\n".join(block["text"] for block in system)
    assert [m["content"] for m in sent["messages"] if m["role"] == "system"] == ([expected] if expected else [])


@LIGHT
@given(
    name=IDS,
    schema=OBJECTS,
    description=st.none() | TEXTS,
    strict=st.none() | st.booleans(),
    examples=st.none() | st.lists(OBJECTS, min_size=1, max_size=2),
)
def test_every_part_of_a_tool_is_carried(
    name: str, schema: Object, description: str | None, strict: bool | None, examples: list[Object] | None
) -> None:
    tool = {
        "name": name,
        "input_schema": schema,
        "description": description,
        "strict": strict,
        "input_examples": examples,
    }
    (sent,) = chat_of(request(tools=[tool]))["tools"]
    function = sent["function"]
    assert (sent["type"], function["name"]) == ("function", name)
    assert (function.get("description"), function.get("strict")) == (description, strict)
    assert function["parameters"] == (schema if examples is None else {**schema, "examples": examples})


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "t"}, {"tool_choice": {"type": "function", "function": {"name": "t"}}}),
        ({"type": "auto", "disable_parallel_tool_use": True}, {"tool_choice": "auto", "parallel_tool_calls": False}),
    ],
    ids=["auto", "any", "none", "tool", "one at a time"],
)
def test_tool_choice(choice: Object, sent: Object) -> None:
    tools = [{"name": "t", "input_schema": {"type": "object"}}]
    chat = chat_of(request(tools=tools, tool_choice=choice))
    assert {name: chat[name] for name in ("tool_choice", "parallel_tool_calls") if name in chat} == sent


def test_a_known_endpoint_gets_the_limit_under_its_own_name() -> None:
    sent = chat_of(request(output_config={"effort": "high"}), OPENAI)
    assert (sent["max_completion_tokens"], "max_tokens" in sent, "reasoning_effort" in sent) == (10, False, False)


def test_an_id_that_openais_user_cannot_hold_is_not_sent_as_one() -> None:
    assert "user" not in chat_of(request(metadata={"user_id": "x" * 65}))


@pytest.mark.parametrize(
    "content",
    [[], [{"type": "document", "source": {"type": "content", "content": []}}]],
    ids=["no block", "an empty document"],
)
def test_a_message_of_nothing_stays_a_message(content: list[Object]) -> None:
    sent = chat_of(request(messages=[{"role": "user", "content": content}]))
    assert sent["messages"] == [{"role": "user", "content": ""}]


def _with(block: Object, role: str = "user") -> Object:
    messages = [{"role": role, "content": [block]}, {"role": "user", "content": "Hi."}]
    return {"messages": messages}


_FILE = {"type": "file", "file_id": "file_1"}
_CITED = {"citations": {"enabled": True}}
REFUSED: dict[str, tuple[Object, str]] = {
    "prefill": ({"messages": [{"role": "assistant", "content": "The answer is"}]}, "messages"),
    "image at Anthropic": (_with({"type": "image", "source": _FILE}), "messages.0.content.0.source"),
    "document at Anthropic": (_with({"type": "document", "source": _FILE}), "messages.0.content.0.source"),
    "PDF at an address": (
        _with({"type": "document", "source": {"type": "url", "url": "https://x.example"}}),
        "messages.0.content.0.source",
    ),
    "citations of a document": (
        _with({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, **_CITED}),
        "messages.0.content.0.citations",
    ),
    "citations of a search result": (
        _with({"type": "search_result", "title": "t", "source": "s", "content": [], **_CITED}),
        "messages.0.content.0.citations",
    ),
    "citations of an answer": (
        _with({"type": "text", "text": "x", "citations": [{"type": "char_location"}]}, "assistant"),
        "messages.0.content.0.citations",
    ),
    "redacted thinking": (_with({"type": "redacted_thinking", "data": "x"}, "assistant"), "messages.0.content.0"),
    "call by a program": (
        _with({"type": "tool_use", "id": "c", "name": "n", "input": {}, "caller": {"type": "code"}}, "assistant"),
        "messages.0.content.0.caller",
    ),
    "web search": ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.0"),
    "bash of Anthropic": ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools.0"),
    "tool for programs": (
        {"tools": [{"name": "t", "input_schema": {}, "allowed_callers": ["code_execution_20260120"]}]},
        "tools.0.allowed_callers",
    ),
    "edit of the context": (
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
        "context_management.edits.0",
    ),
    "tool choice without a name": ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
    "container": ({"container": "c"}, "container"),
    "MCP servers": ({"mcp_servers": [{"url": "https://x.example"}]}, "mcp_servers"),
    "place of inference": ({"inference_geo": "eu"}, "inference_geo"),
}


@pytest.mark.parametrize(("fields", "param"), REFUSED.values(), ids=REFUSED)
def test_what_a_chat_cannot_hold_is_refused_by_name(fields: Object, param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        chat_of(request(**fields))
    assert (refused.value.http_status, refused.value.param, refused.value.code) == (400, param, "not_supported")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"speed": "fast"}, "speed"),
        ({"temperature": 1.5}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"unknown": 1}, "unknown"),
        (
            _with({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, "assistant"),
            "messages.0.assistant.content.blocks.0",
        ),
        (_with({"type": "text", "text": "x", "unknown": 1}), "messages.0.user.content.blocks.0.text.unknown"),
    ],
    ids=["fast", "temperature", "no tokens", "unknown field", "server tool", "unknown field of a block"],
)
def test_what_the_models_of_the_wire_do_not_have_is_refused(fields: Object, param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        chat_of(request(**fields))
    assert str(refused.value.param).startswith(param)
