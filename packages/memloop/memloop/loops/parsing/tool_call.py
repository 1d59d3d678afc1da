"""The reply of the memory writer: one tool call.

Engines lose calls: inside ``<think>``, or as an empty list under ``tool_choice: required``. So a call is looked for
in three places, in this order: the engine's own ``tool_calls`` (native); the raw text, as hermes ``<tool_call>`` or as
bare JSON (fallback); the thinking, as ``<tool_call>`` only (fallback). Of several calls the first counts.
"""

import json
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from memloop.loops.parsing.spoken import listen
from memloop.ports import Completion
from memloop.wire.chat import Json, ToolCall

_TAG = re.compile(r"<tool_call>\s*")
_FENCE = "```"


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call whose arguments are an unchecked JSON object. ``ignored`` counts further calls, which are dropped."""

    name: str
    arguments: Json
    path: Literal["native", "fallback"]
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class NoCall:
    """The reply holds no readable call; ``problem`` is the reason, for the model and the record."""

    problem: str


_Raw: TypeAlias = tuple[object, int]
"""The first call as decoded JSON, and how many calls there were."""


def find_call(completion: Completion) -> FoundCall | NoCall:
    """Return the reply's first tool call, by whichever path it came."""
    if completion.tool_calls:
        return _native(completion.tool_calls)
    spoken = listen(completion)
    for read in (_tagged(spoken.text), _bare(spoken.text), _tagged(spoken.reasoning)):
        if read is not None:
            return _call(*read) if not isinstance(read, NoCall) else read
    return NoCall("the reply was empty" if not spoken.text else "the reply held no tool call")


def _native(calls: tuple[ToolCall, ...]) -> FoundCall | NoCall:
    function = calls[0].function
    arguments = _object(function.arguments)
    if arguments is None:
        return NoCall(f"the arguments of {function.name} are not a JSON object")
    return FoundCall(function.name, arguments, "native", ignored=len(calls) - 1)


def _tagged(text: str) -> _Raw | NoCall | None:
    marks = list(_TAG.finditer(text))
    if not marks:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, marks[0].end())
    except (ValueError, RecursionError):
        return NoCall("the tool call is cut off or not JSON")
    return value, len(marks)


def _bare(text: str) -> _Raw | None:
    value = _json(_unfenced(text))
    if isinstance(value, list) and value:
        calls = cast(list[object], value)
        return calls[0], len(calls)
    return (cast(Json, value), 1) if isinstance(value, dict) else None


def _unfenced(text: str) -> str:
    """Return the text inside one code fence around all of it; the text itself without one."""
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    return text[len(_FENCE) : -len(_FENCE)].removeprefix("json").strip()


def _call(value: object, count: int) -> FoundCall | NoCall:
    call = cast(Json, value) if isinstance(value, dict) else {}
    name = call.get("name")
    arguments = call.get("arguments", call.get("parameters"))
    if isinstance(arguments, str):
        arguments = _object(arguments)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return NoCall('a tool call is {"name": …, "arguments": {…}}')
    return FoundCall(name, arguments, "fallback", ignored=count - 1)


def _object(text: str) -> Json | None:
    value = _json(text)
    return cast(Json, value) if isinstance(value, dict) else None


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
