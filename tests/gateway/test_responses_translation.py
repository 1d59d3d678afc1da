"""The translation between the Responses API and chat completions: what both can hold arrives, the rest is refused."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.messages.answers import message_of
from gateway.responses.assembly import Assembly
from gateway.responses.items import ITEMS, items_of
from gateway.responses.to_chat import messages_of
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError, InvalidRequest

Object: TypeAlias = dict[str, Any]
Said: TypeAlias = tuple[str, ...]
"""One thing that somebody said: who, as what, and the content."""

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
NAMES = st.text("abcdefgh_", min_size=1, max_size=8)


def _object(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries(fields)


def _texts(kind: str) -> st.SearchStrategy[Object]:
    return _object(type=st.just(kind), text=TEXTS)


IMAGES = _object(type=st.just("input_image"), image_url=TEXTS, detail=st.sampled_from(["auto", "low", "high"]))
FILES = _object(type=st.just("input_file"), filename=TEXTS, file_data=TEXTS)
AUDIO = _object(type=st.just("input_audio"), input_audio=_object(data=TEXTS, format=st.just("wav")))
PARTS: dict[str, st.SearchStrategy[Object]] = {
    "user": st.one_of(_texts("input_text"), IMAGES, FILES, AUDIO),
    "system": _texts("input_text"),
    "developer": _texts("input_text"),
    "assistant": st.one_of(_texts("output_text"), _object(type=st.just("refusal"), refusal=TEXTS)),
}


def _messages(role: str) -> st.SearchStrategy[Object]:
    return _object(role=st.just(role), content=st.one_of(TEXTS, st.lists(PARTS[role], min_size=1, max_size=3)))


MESSAGES = st.one_of(*map(_messages, PARTS))
CALLS_BY_TYPE: dict[str, st.SearchStrategy[Object]] = {
    "function_call": _object(name=NAMES, arguments=TEXTS),
    "custom_tool_call": _object(name=NAMES, input=TEXTS),
    "local_shell_call": _object(action=_object(type=st.just("exec"), command=st.lists(TEXTS, max_size=3))),
    "tool_search_call": _object(execution=st.just("client"), arguments=st.dictionaries(TEXTS, TEXTS, max_size=2)),
}
OUTPUTS_BY_CALL: dict[str, str] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "tool_search_call": "tool_search_output",
}


def _calls(kind: str) -> st.SearchStrategy[Object]:
    head = _object(type=st.just(kind), call_id=NAMES)
    return st.tuples(head, CALLS_BY_TYPE[kind]).map(lambda both: both[0] | both[1])


CALLS = st.one_of(*map(_calls, CALLS_BY_TYPE))
OUTPUTS = st.one_of(TEXTS, st.lists(st.one_of(_texts("input_text"), IMAGES, FILES), min_size=1, max_size=3))
REASONING = _object(
    type=st.just("reasoning"), summary=st.just([]), content=st.lists(_texts("reasoning_text"), min_size=1, max_size=1)
)
FILE_SEARCHES = _object(
    type=st.just("file_search_call"), queries=st.lists(TEXTS, max_size=2), status=st.just("completed")
)
"""An engine is not told of these: it saw the passages."""


@st.composite
def conversations(draw: st.DrawFn) -> list[Object]:
    """Items in any order, one of them more than a file search; an output follows its call."""
    items: list[Object] = []
    drawn = st.lists(st.one_of(MESSAGES, CALLS, REASONING, FILE_SEARCHES), min_size=1, max_size=8)
    for item in draw(drawn.filter(lambda some: any(one.get("type") != "file_search_call" for one in some))):
        items.append(item)
        if item.get("type") in CALLS_BY_TYPE and draw(st.booleans()):
            items.append(draw(outputs_of(item)))
    return items


@st.composite
def outputs_of(draw: st.DrawFn, call: Object) -> Object:
    """What a call returned."""
    kind = OUTPUTS_BY_CALL[call["type"]]
    match kind:
        case "local_shell_call_output":
            return {"type": kind, "id": call["call_id"], "output": draw(TEXTS)}
        case "tool_search_output":
            tools = [{"type": "function", "name": name} for name in draw(st.lists(NAMES, max_size=2))]
            return {"type": kind, "call_id": call["call_id"], "execution": "client", "tools": tools}
        case _:
            return {"type": kind, "call_id": call["call_id"], "output": draw(OUTPUTS)}


def as_written(arguments: str) -> str:
    """The arguments of a call in one spelling, whatever spaces JSON has in it."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return arguments


def _called(item: Object) -> Said:
    """A call as a function's name and its arguments."""
    match item["type"]:
        case "function_call":
            name, arguments = item["name"], item["arguments"]
        case "custom_tool_call":
            name, arguments = item["name"], json.dumps({"input": item["input"]})
        case "local_shell_call":
            name, arguments = "local_shell", json.dumps({"command": item["action"]["command"]})
        case _:
            name, arguments = "tool_search", json.dumps(item["arguments"])
    return "assistant", "call", item["call_id"], name, as_written(arguments)


def _returned(item: Object) -> Iterator[Said]:
    """The texts of an output, then its pictures and files in the user's name."""
    call_id = str(item["call_id"] if "call_id" in item else item["id"])
    if item["type"] == "tool_search_output":
        yield "tool", call_id, as_written(json.dumps({"tools": [tool["name"] for tool in item["tools"]]}))
        return
    output = item["output"]
    parts = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
    yield from (("tool", call_id, as_written(part["text"])) for part in parts if part["type"] == "input_text")
    others = [("user", *_part(part)) for part in parts if part["type"] != "input_text"]
    if others:
        yield "user", "text", f"From the output of the tool call {call_id}:"
        yield from others


def said_in_items(items: Sequence[Object]) -> Iterator[Said]:
    """What a list of items says."""
    for item in items:
        match item.get("type", "message"):
            case "message":
                role = "system" if item["role"] == "developer" else item["role"]
                content = item["content"]
                parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
                yield from ((role, *_part(part)) for part in parts)
            case kind if kind in CALLS_BY_TYPE:
                yield _called(item)
            case kind if kind in OUTPUTS_BY_CALL.values():
                yield from _returned(item)
            case "file_search_call":
                pass
            case _:
                yield "assistant", "thinks", item["content"][0]["text"]


def _part(part: Object) -> Said:
    match part["type"]:
        case "input_image":
            return "image", part["image_url"], part["detail"]
        case "input_file":
            return "file", part["filename"], part["file_data"]
        case "input_audio":
            return "audio", part["input_audio"]["data"], part["input_audio"]["format"]
        case "refusal":
            return "refusal", part["refusal"]
        case _:
            return "text", part["text"]


def said_in_messages(messages: Sequence[Any]) -> Iterator[Said]:
    """What the messages of a chat say."""
    for message in messages:
        role = message["role"]
        if role == "tool":
            texts = [text[1] for text in _content(message["content"])]
            yield from (("tool", message["tool_call_id"], as_written(text)) for text in texts)
            continue
        if "reasoning_content" in message:
            yield role, "thinks", message["reasoning_content"]
        yield from ((role, *part) for part in _content(message["content"]))
        for call in message.get("tool_calls", ()):
            yield role, "call", call["id"], call["function"]["name"], as_written(call["function"]["arguments"])


def _content(content: Any) -> Iterator[Said]:
    if isinstance(content, str):
        yield from [("text", content)] if content else []
        return
    for part in content or ():
        match part["type"]:
            case "image_url":
                yield "image", part["image_url"]["url"], part["image_url"]["detail"]
            case "file":
                yield "file", part["file"]["filename"], part["file"]["file_data"]
            case "input_audio":
                yield "audio", part["input_audio"]["data"], part["input_audio"]["format"]
            case "refusal":
                yield "refusal", part["refusal"]
            case _:
                yield "text", part["text"]


def joined_system(said: Sequence[Said]) -> list[Said]:
    """The same, with the system's texts at the beginning as one."""
    leading = 0
    while leading < len(said) and said[leading][:2] == ("system", "text"):
        leading += 1
    text = "\n\n".join(part[2] for part in said[:leading])
    return [("system", "text", text), *said[leading:]] if leading else list(said)


def test_every_item_that_a_request_may_have_is_drawn() -> None:
    assert {"message", "reasoning", "file_search_call", *CALLS_BY_TYPE, *OUTPUTS_BY_CALL.values()} == ITEMS.keys()


@given(conversations())
def test_a_chat_says_what_the_items_say_in_their_order(items: list[Object]) -> None:
    messages = messages_of(items_of(items), None)
    assert list(said_in_messages(messages)) == joined_system(list(said_in_items(items)))


def test_system_messages_around_a_file_search_are_one() -> None:
    search: Object = {"type": "file_search_call", "id": "fs_1", "queries": [], "status": "completed"}
    around: list[Object] = [{"role": role, "content": role} for role in ("system", "developer")]
    messages = messages_of(items_of([around[0], search, around[1]]), None)
    assert messages == [{"role": "system", "content": "system\n\ndeveloper"}]


def test_a_file_search_alone_is_no_input() -> None:
    search: Object = {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "status": "completed"}
    with pytest.raises(InvalidRequest, match="no input"):
        messages_of(items_of([search]), None)


@given(conversations(), TEXTS)
def test_instructions_come_first(items: list[Object], instructions: str) -> None:
    [first, *_] = messages_of(items_of(items), instructions)
    assert isinstance(first, dict)
    assert first["role"] == "system"
    assert str(first["content"]).startswith(instructions)


@given(conversations(), st.data())
def test_an_item_with_a_field_that_engines_do_not_know_is_refused_by_name(
    items: list[Object], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(items) - 1))
    items[place] = {**items[place], "unheard_of": 1}
    with pytest.raises(InvalidRequest) as refused:
        items_of(items)
    assert (refused.value.http_status, refused.value.param) == (400, f"input[{place}].unheard_of")


@st.composite
def answers(draw: st.DrawFn) -> Object:
    """An engine's message: any of reasoning, text and calls."""
    message: Object = {"role": "assistant", "content": draw(st.none() | TEXTS)}
    if draw(st.booleans()):
        message["reasoning_content"] = draw(TEXTS)
    calls = draw(st.lists(st.tuples(NAMES, st.text('{}":a', max_size=6)), max_size=3))
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for place, (name, arguments) in enumerate(calls)
        ]
    return message


def deltas_of(message: Object, size: int) -> Iterator[Object]:
    """The message as an engine streams it, in pieces of this size."""
    yield {"role": "assistant", "content": ""}
    for field in ("reasoning_content", "content"):
        yield from ({field: piece} for piece in _pieces(message.get(field) or "", size))
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        head = {"name": function["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": head}]}
        for piece in _pieces(function["arguments"], size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def assembly() -> Assembly:
    return Assembly(lambda prefix, place: f"{prefix}_{place}")


def streamed(message: Object, size: int = 3, reason: str = "stop") -> tuple[Assembly, list[Json]]:
    """What a stream of the message becomes, and its events."""
    made, events = assembly(), list[Json]()
    for delta in deltas_of(message, size):
        events += made.feed({}, delta)
    return made, events + made.feed({"finish_reason": reason}, {})


@given(answers(), st.integers(1, 5))
def test_a_stream_and_a_whole_answer_have_the_same_items(message: Object, size: int) -> None:
    whole = assembly()
    whole.feed({"finish_reason": "stop"}, message)
    made, _ = streamed(message, size)
    assert made.output == whole.output
    assert made.text() == (message["content"] or "")


@given(answers(), st.integers(1, 5))
def test_the_items_of_an_answer_become_the_engines_message_again(message: Object, size: int) -> None:
    made, _ = streamed(message, size)
    again = messages_of(items_of([{"role": "user", "content": "x"}, *made.output]), None)[1:]
    expected = {name: value for name, value in message.items() if value is not None}
    if len(expected) == 1:
        assert again == []
    else:
        assert [_spoken(part) for part in again] == [{"content": expected.pop("content", None), **_kept(expected)}]


def _spoken(message: Any) -> Object:
    says_nothing = message["content"] in (None, "")
    return {**message, "content": None if says_nothing else message["content"]}


def _kept(message: Object) -> Object:
    return {name: value for name, value in message.items() if name in {"role", "reasoning_content", "tool_calls"}}


@given(answers(), st.integers(1, 5))
def test_events_are_in_the_public_apis_order(message: Object, size: int) -> None:
    made, events = streamed(message, size)
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == made.output
    for index, item in enumerate(made.output):
        own = [event for event in events if event["output_index"] == index]
        assert (own[0]["type"], own[-1]["type"]) == ("response.output_item.added", "response.output_item.done")
        assert {str(event.get("item_id", item["id"])) for event in own} == {str(item["id"])}
        assert _grown(own) == _shown(item)
    assert [event["output_index"] for event in events] == sorted(int(str(event["output_index"])) for event in events)


def _grown(events: Sequence[Json]) -> str:
    """The deltas of one item, after checking that they are framed."""
    kinds = [str(event["type"]).removeprefix("response.") for event in events][1:-1]
    deltas = [str(event["delta"]) for event in events if "delta" in event]
    if kinds[0] == "content_part.added":
        assert kinds[-1] == "content_part.done"
        kinds = kinds[1:-1]
    *middle, last = kinds
    assert last.endswith(".done")
    assert set(middle) <= {last.removesuffix("done") + "delta"}
    return "".join(deltas)


def _shown(item: Mapping[str, Any]) -> str:
    return item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]


def test_calls_that_an_engine_numbers_alike_are_kept_apart() -> None:
    made = assembly()
    for place in (1, 2):
        function = {"name": f"f{place}", "arguments": "{}"}
        called: Any = {"index": 0, "id": f"call_{place}", "function": function}
        made.feed({}, {"tool_calls": [called]})
    made.feed({"finish_reason": "tool_calls"}, {})
    assert [(item["name"], item["arguments"]) for item in made.output] == [("f1", "{}"), ("f2", "{}")]


def test_a_call_without_an_id_gets_one_and_arguments_may_be_an_object() -> None:
    made = assembly()
    called: Json = {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}
    made.feed({"finish_reason": "stop"}, called)
    assert made.output[0]["call_id"]
    assert made.output[0]["arguments"] == '{"a":1}'


def test_a_delta_of_a_call_that_never_began_is_the_engines_error() -> None:
    with pytest.raises(EngineError):
        assembly().feed({}, {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]})


def test_a_reply_that_the_engine_broke_off_is_its_error() -> None:
    with pytest.raises(EngineError):
        assembly().feed({"finish_reason": "abort"}, {"content": "Hel"})


@pytest.mark.parametrize("more", [{}, {"reasoning_content": "Hm."}, {"reasoning_content": ""}])
def test_an_engine_that_sends_its_reasoning_under_two_names_is_read_once(more: Json) -> None:
    made, message = assembly(), {"reasoning": "Hm.", **more}
    made.feed({"finish_reason": "stop"}, message)
    assert made.output[0]["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    shown: Any = message_of({"choices": [{"message": message}]}, model="m", stops=(), thinking=True)
    assert shown["content"][0]["thinking"] == "Hm."


def test_a_refusal_is_a_part_of_its_own() -> None:
    made = assembly()
    events = [*made.feed({}, {"refusal": "I "}), *made.feed({"finish_reason": "stop"}, {"refusal": "won't."})]
    assert made.output[0]["content"] == [{"type": "refusal", "refusal": "I won't."}]
    assert [event["type"] for event in events][2:5] == [
        "response.refusal.delta",
        "response.refusal.delta",
        "response.refusal.done",
    ]
