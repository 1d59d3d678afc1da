"""What real inference programs answered to one list of requests, and how another engine's answers differ from it.

``recorded/NAME.json`` holds the answers of a program. ``python -m tests.real_engines.record`` writes it. Nothing of a
model's text is in it: texts and counts are blanked, the words of errors are kept.
"""

import copy
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import aiohttp
from aiohttp import web

from tests.fakes.strict_shapes import Body, Refused

Answers: TypeAlias = Mapping[str, Body]
"""Answers by the name of the request, each with ``status``, ``type`` and ``body``. A stream's body is its events."""

FOLDER: Final = Path(__file__).parent / "recorded"
DONE: Final = "[DONE]"
_TEXT: Final = "…"
_KEPT_TEXTS: Final = frozenset({"object", "role", "type", "finish_reason", "owned_by"})
_KEPT_NUMBERS: Final = frozenset({"index", "code"})
_ENDS: Final = ("stop", "length")
_ERROR_CHARS: Final = 300

_USER: Final[Body] = {"role": "user", "content": "Say hello."}
LOOK_UP: Final[Body] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks up a word.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string", "enum": ["dog"]}},
            "required": ["word"],
            "additionalProperties": False,
        },
    },
}
_CALLED: Final[Body] = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "look_up", "arguments": '{"word": "dog"}'},
}
_ASKS: Final[Body] = {"role": "user", "content": "Look up: dog"}
_CALLS: Final[Body] = {"role": "assistant", "content": "", "tool_calls": [_CALLED]}
_LOOKED_UP: Final = (*(_ASKS, _CALLS) * 3, _ASKS)
"""What makes a model of few parameters call the tool once more."""
_SCHEMA: Final[Body] = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": ["dog"]}},
    "required": ["word"],
    "additionalProperties": False,
}


_NAMELESS: Final[Body] = {"parameters": {}}


def _chat(*messages: Body, **fields: object) -> Body:
    """A chat with a reply of one token, without a thought before it."""
    without = {"enable_thinking": False}
    asked = {"max_tokens": 1, "temperature": 0, "chat_template_kwargs": without, **fields}
    return {"messages": list(messages or (_USER,)), **asked}


def _json_schema(schema: Body) -> Body:
    return {"type": "json_schema", "json_schema": {"name": "word", "strict": True, "schema": schema}}


CHATS: Final[Mapping[str, Body]] = {
    "a reply": _chat(),
    "a stream": _chat(stream=True, max_tokens=4),
    "a stream with its usage": _chat(stream=True, max_tokens=4, stream_options={"include_usage": True}),
    "a call": _chat(*_LOOKED_UP, tools=[LOOK_UP], tool_choice="required", max_tokens=60),
    "a call as a stream": _chat(
        *_LOOKED_UP,
        tools=[LOOK_UP],
        tool_choice="required",
        max_tokens=60,
        stream=True,
        stream_options={"include_usage": True},
    ),
    "after a call": _chat(
        _ASKS, _CALLS, {"role": "tool", "tool_call_id": "call00001", "content": "An animal."}, tools=[LOOK_UP]
    ),
    "JSON by schema": _chat(response_format=_json_schema(_SCHEMA), max_tokens=200),
    "JSON of any kind": _chat(response_format={"type": "json_object"}),
    "too long": _chat({"role": "user", "content": "The harbour lies in the north. " * 3000}),
    "a limit beyond the window": _chat(max_tokens=100_000),
    "an unknown field": _chat(no_such_field=1),
    "a thought": _chat(chat_template_kwargs={}),
    "a thought as a stream": _chat(chat_template_kwargs={}, stream=True, max_tokens=4),
    "two user messages": _chat(_USER, _USER),
    "the assistant first": _chat({"role": "assistant", "content": "Hello."}, _USER),
    "a system message later": _chat(_USER, {"role": "system", "content": "Be kind."}, _USER),
    "a developer message": _chat({"role": "developer", "content": "Be kind."}, _USER),
    "an unknown role": _chat({"role": "wizard", "content": "Hello."}),
    "no content": _chat({"role": "user", "content": None}),
    "content in parts": _chat({"role": "user", "content": [{"type": "text", "text": "Say hello."}]}),
    "an image": _chat(
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]}
    ),
    "no messages": _chat() | {"messages": []},
    "a wrong temperature": _chat(temperature="warm"),
    "a wrong limit": _chat(max_tokens=-5),
    "a schema that is none": _chat(response_format=_json_schema({"type": "no-such-type"})),
    "a schema with an unknown reference": _chat(response_format=_json_schema({"$ref": "#/$defs/nowhere"})),
    "a format that is none": _chat(response_format={"type": "no-such-format"}),
    "a tool without a name": _chat(tools=[{"type": "function", "function": _NAMELESS}]),
    "an unknown choice of a tool": _chat(tools=[LOOK_UP], tool_choice="perhaps"),
    "another model": _chat(model="no-such-model"),
}
"""The chats, but for the model's name. A model of few parameters answers most of them with nonsense, in shape."""
PATHS: Final[Mapping[str, str]] = {
    "its models": "/v1/models",
    "its properties": "/props",
    "its version": "/version",
    "no such path": "/v1/nowhere",
}
NO_ROOM: Final = "a limit beyond the room"
BROKEN: Final = "a body that is no JSON"
ALL: Final = frozenset({*CHATS, *PATHS, NO_ROOM, BROKEN})


def read(name: str) -> Answers:
    """Return the recorded answers of a program."""
    answers = json.loads((FOLDER / f"{name}.json").read_text())["answers"]
    return {case: answers[answer] if isinstance(answer, str) else answer for case, answer in answers.items()}


def write(name: str, version: str, answers: Answers) -> None:
    """Record a program's answers; one that equals another is that one's name."""
    first = {json.dumps(answers[case]): case for case in reversed(list(answers))}
    named = {case: answer if (one := first[json.dumps(answer)]) == case else one for case, answer in answers.items()}
    text = json.dumps({"version": version, "answers": named}, indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n")


async def answers_of(root: str, *, only: Collection[str] = ALL, timeout_s: float = 300.0) -> Answers:
    """Ask an engine; ``root`` is its URL without ``/v1``, ``only`` the names of the requests."""
    found: dict[str, Body] = {}
    connector, timeout = aiohttp.TCPConnector(force_close=True), aiohttp.ClientTimeout(total=timeout_s)
    async with aiohttp.ClientSession(root, connector=connector, timeout=timeout) as http:
        for name, path in ((name, path) for name, path in PATHS.items() if name in only):
            async with http.get(path) as answer:
                found[name] = await _blanked_answer(answer)
        async with http.get("/v1/models") as listed:
            row = (await listed.json())["data"][0]
        model, window = row["id"], row.get("max_model_len") or row["meta"]["n_ctx"]
        chats = (*CHATS.items(), (NO_ROOM, _chat(max_tokens=window - 2)))
        for name, chat in ((name, chat) for name, chat in chats if name in only):
            async with http.post("/v1/chat/completions", json={"model": model, **chat}) as answer:
                found[name] = await _blanked_answer(answer)
        if BROKEN in only:
            headers = {"Content-Type": "application/json"}
            async with http.post("/v1/chat/completions", data=b'{"messages": [', headers=headers) as answer:
                found[BROKEN] = await _blanked_answer(answer)
    return found


async def _blanked_answer(answer: aiohttp.ClientResponse) -> Body:
    raw = (await answer.read()).decode()
    body: Any = None
    if answer.content_type == "text/event-stream":
        data = [event.partition("data: ")[2] for event in raw.split("\n\n") if event]
        body = [DONE if one == DONE else json.loads(one) for one in data]
    elif raw.startswith(("{", "[")):
        body = json.loads(raw)
    else:
        body = raw
    return {"status": answer.status, "type": answer.content_type, "body": blanked(body)}


def blanked(value: Any, name: str = "", *, of_error: bool = False) -> Any:
    """Return the value without what differs from reply to reply: texts, counts, times. Equal neighbours become one."""
    if isinstance(value, dict):
        fields = cast(Body, value)
        inside = of_error or name == "error" or fields.get("object") == "error"
        return {key: blanked(each, key, of_error=inside) for key, each in fields.items()}
    if isinstance(value, list):
        each_blanked = (blanked(each, name, of_error=of_error) for each in cast(list[Any], value))
        return [one for one, _ in groupby(each_blanked)]
    if isinstance(value, str):
        if of_error:
            return re.sub(r"\d{2,}", "00", value[:_ERROR_CHARS])
        if name in _KEPT_TEXTS or value == DONE:
            return value
        return _TEXT if value else ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if name in _KEPT_NUMBERS else 0
    return value


def differences(recorded: Any, given: Any, place: str = "") -> Iterator[str]:
    """Yield every place where the second value has another shape than the first.

    Whether a reply ends by itself or at its limit is up to the model.
    """
    if isinstance(recorded, dict) and isinstance(given, dict):
        theirs, ours = cast(Body, recorded), cast(Body, given)
        for name in sorted(theirs.keys() | ours.keys()):
            inner = f"{place}.{name}" if place else name
            if name not in ours:
                yield f"{inner}: missing"
            elif name not in theirs:
                yield f"{inner}: not in the record"
            else:
                yield from differences(theirs[name], ours[name], inner)
    elif isinstance(recorded, list) and isinstance(given, list):
        for at, (one, other) in enumerate(zip_longest(cast(list[Any], recorded), cast(list[Any], given))):
            yield from differences(one, other, f"{place}[{at}]")
    elif recorded != given and not (recorded in _ENDS and given in _ENDS):
        yield f"{place}: {json.dumps(given)} instead of {json.dumps(recorded)}"


class Recorded:
    """A program as it is recorded: gives its answers with other texts and numbers in them."""

    def __init__(self, name: str) -> None:
        self._answers = read(name)

    def answer(
        self,
        asked: Body,
        message: Body,
        reason: str,
        usage: Body,
        *,
        shaped: Callable[[Body], Body] = lambda body: body,
    ) -> web.Response:
        """Return the answer to a chat, whole or streamed, with this message. A call has the program's own reason."""
        if not asked.get("stream"):
            return web.json_response(shaped(self._whole(message, reason, usage)))
        options: Body = asked.get("stream_options") or {}
        events = self._events(message, reason, usage if options.get("include_usage") else None)
        text = "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events)
        return web.Response(text=text, content_type="text/event-stream")

    def _whole(self, message: Body, reason: str, usage: Body) -> Body:
        calls = bool(message.get("tool_calls"))
        answer = self._body("a call" if calls else "a reply")
        choice = answer["choices"][0]
        choice["message"] = self._said(choice["message"], message)
        choice["finish_reason"] = choice["finish_reason"] if calls else reason
        answer["usage"] |= usage
        return answer

    def _events(self, message: Body, reason: str, usage: Body | None) -> list[Body | str]:
        calls: list[Body] = message.get("tool_calls") or []
        case = "a call as a stream" if calls else "a stream" if usage is None else "a stream with its usage"
        found: list[Body | str] = []
        text = str(message.get("content") or "")
        arguments = [call["function"]["arguments"] for call in calls]
        for event in self._body(case):
            if event == DONE or (usage is None and not event["choices"]):
                found += [event] if event == DONE else []
                continue
            choice: Body = event["choices"][0] if event["choices"] else {}
            delta: Body = choice.get("delta") or {}
            if usage is not None and event.get("usage"):
                event["usage"] |= usage
            if choice.get("finish_reason") and not calls:
                choice["finish_reason"] = reason
            if delta.get("content"):
                delta["content"], text = text, ""  # all of it in the first event that has some
            found += _with_calls(event, calls, arguments) if calls and delta.get("tool_calls") else [event]
        return found

    def refusal(self, case: str, *numbers: int) -> Refused:
        """Return the refusal with these numbers in its words."""
        answer = self._answers[case]
        body = copy.deepcopy(answer["body"])
        given = iter(map(str, numbers))
        body["error"]["message"] = re.sub("00+", lambda found: next(given, found[0]), body["error"]["message"])
        return Refused(answer["status"], body)

    def models(self, model: str, window: int) -> Body:
        """Return the list with this one model."""
        listed = self._body("its models")
        row = listed["data"][0]
        row["id"] = model
        row |= {"max_model_len": window} if "max_model_len" in row else {"meta": row["meta"] | {"n_ctx": window}}
        return listed

    def props(self, window: int) -> Body:
        """Return llama.cpp's properties of a slot with this window."""
        properties = self._body("its properties")
        properties["default_generation_settings"]["n_ctx"] = window
        return properties

    def _body(self, case: str) -> Any:
        return copy.deepcopy(self._answers[case]["body"])

    def _said(self, shape: Body, message: Body) -> Body:
        """Return the message with the fields that the program sends beside its own."""
        calls = [shape["tool_calls"][0] | call for call in message.get("tool_calls") or ()]
        content = message.get("content") or (shape["content"] if calls else message.get("content"))
        return shape | message | {"content": content} | ({"tool_calls": calls} if calls else {})


def _with_calls(event: Body, calls: Sequence[Body], left: list[str]) -> list[Body]:
    """Return a piece of a recorded call once for each of these: its beginning, or the rest of its arguments.

    ``left`` are the arguments that no piece has yet.
    """
    found: list[Body] = []
    for place, call in enumerate(calls):
        one = copy.deepcopy(event)
        [piece] = one["choices"][0]["delta"]["tool_calls"]
        begins = "id" in piece
        piece["index"] = place
        if begins:
            piece["id"], piece["function"]["name"] = call["id"], call["function"]["name"]
        if "arguments" in piece["function"]:
            size = 1 if begins else len(left[place])
            piece["function"]["arguments"], left[place] = left[place][:size], left[place][size:]
        found.append(one)
    return found
