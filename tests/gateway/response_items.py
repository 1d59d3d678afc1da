"""Drawn items of a Responses request, and what items and chat messages say."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

Object: TypeAlias = dict[str, Any]
Said: TypeAlias = tuple[str, ...]
"""One thing that somebody said: who, as what, and the content."""
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
NAMES = st.text("abcdefgh_", min_size=1, max_size=8)


def _object(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries(fields)


def _texts(kind: str) -> st.SearchStrategy[Object]:
    return _object(type=st.just(kind), text=TEXTS)


IMAGES = _object(
    type=st.just("input_image"), image_url=TEXTS.map("data:,".__add__), detail=st.sampled_from(["auto", "low", "high"])
)
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
        is_call = item.get("type") in CALLS_BY_TYPE
        items.append({**item, "call_id": f"{item['call_id']}{len(items)}"} if is_call else item)
        if is_call and draw(st.booleans()):
            items.append(draw(outputs_of(items[-1])))
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
    """The kind of a part, by one name in both APIs, and its texts."""
    kind = part["type"].removeprefix("input_").removeprefix("output_").removesuffix("_url")
    return kind, *_texts_in({name: value for name, value in part.items() if name != "type"})


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    else:
        for _, inner in sorted(value.items()):
            yield from _texts_in(inner)


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
    else:
        yield from map(_part, content or ())


def joined_system(said: Sequence[Said]) -> list[Said]:
    """The same, with the system's texts at the beginning as one."""
    leading = 0
    while leading < len(said) and said[leading][:2] == ("system", "text"):
        leading += 1
    text = "\n\n".join(part[2] for part in said[:leading])
    return [("system", "text", text), *said[leading:]] if leading else list(said)
