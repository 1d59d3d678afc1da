"""The reply of the memory writer: one tool call.

Engines lose calls: inside ``<think>``, or as an empty list under ``tool_choice: required``; and models whose template
does not show tools write them as text. So a call is looked for in this order: the engine's own ``tool_calls``
(native); the text, as hermes ``<tool_call>``, as Qwen's ``<function=…>``, as JSON with or without prose around it,
as JSON behind the tool's name (Mistral, Llama), or as a call in Python; the thinking, as ``<tool_call>`` only. Of
several calls the first counts.
"""

import ast
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final, cast

from memloop.loops.parsing.json_values import ParsePath, json_values
from memloop.loops.parsing.spoken import listen
from memloop.ports import Completion
from memloop.wire.chat import Json, ToolCall

_TAG: Final = re.compile(r"<tool_call>\s*")
_LIST_NAMES: Final = ("memory_list", "memory list", "memories")
_ADD: Final = "add_memory"
_TOOL: Final = r"(?:search|add|buffer|ignore)_memory"
_PYTHON_CALL: Final = re.compile(rf"\b{_TOOL}\(")
_XML_CALL: Final = re.compile(rf"<function=({_TOOL})>")
_XML_VALUE: Final = re.compile(r"<parameter=(\w{1,64})>([^<]*)(?:</parameter>|$)")
_NAMED: Final = re.compile(rf"\b({_TOOL})\b" r"(?:\[ARGS\]|[^\w{}]){0,8}(?=\{)")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input", "action_input")
_MOST_CALLS: Final = 8


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call whose arguments are an unchecked JSON object. ``ignored`` counts further calls, which are dropped."""

    name: str
    arguments: Json
    path: ParsePath
    ignored: int = 0
    begun: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class NoCall:
    """The reply holds no readable call; ``problem`` is the reason, for the model and the record.

    ``begun``: it holds the beginning of one, or one in another form.
    """

    problem: str
    begun: bool = False


def find_call(completion: Completion) -> FoundCall | NoCall:
    """Return the reply's first tool call, by whichever path it came."""
    if completion.tool_calls:
        return _native(completion.tool_calls)
    spoken = listen(completion)
    for found in (
        _in_xml(spoken.text),
        _in_json(spoken.text),
        _behind_its_name(spoken.text),
        _in_python(spoken.text),
        _in_json(spoken.reasoning, tagged=True),
    ):
        if found is not None:
            return found
    if not spoken.text:
        return NoCall("the reply was empty")
    behind = _TAG.split(spoken.text, maxsplit=1)[-1]
    if any(found.path == "native" or len(behind) < len(spoken.text) for found in json_values(behind)):
        return NoCall('a tool call is {"name": …, "arguments": {…}}', begun=True)
    if len(behind) < len(spoken.text):
        return NoCall("the tool call is cut off or not JSON", begun=True)
    return NoCall("the reply held no tool call")


def _native(calls: tuple[ToolCall, ...]) -> FoundCall | NoCall:
    function = calls[0].function
    path: ParsePath = "native"
    try:
        arguments: object = json.loads(function.arguments)
    except (ValueError, RecursionError):
        arguments, path = next((found.value for found in json_values(function.arguments)), None), "repaired"
    if not isinstance(arguments, dict):
        return NoCall(f"the arguments of {function.name} are not a JSON object", begun=True)
    return FoundCall(function.name, cast(Json, arguments), path, ignored=len(calls) - 1)


def _in_json(text: str, *, tagged: bool = False) -> FoundCall | None:
    """Return the first JSON value that is a call, behind the first tag if there is one. ``tagged`` wants a tag."""
    tags = list(_TAG.finditer(text))
    if tagged and not tags:
        return None
    for found in json_values(text[tags[0].end() :] if tags else text):
        calls: list[object] = found.value if isinstance(found.value, list) else [found.value]
        call = _call(calls[0] if calls else None)
        if call is not None:
            name, arguments = call
            path: ParsePath = "repaired" if found.path == "repaired" else "fallback"
            return FoundCall(name, arguments, path, ignored=max(len(tags), len(calls)) - 1)
        if isinstance(found.value, list) and calls and all(_is_draft(entry) for entry in calls):
            return FoundCall(_ADD, cast(Json, {"memory_list": found.value}), "repaired")
    return None


def _call(value: object) -> tuple[str, Json] | None:
    """Return name and arguments of a call in one of the forms in which models write one."""
    if not isinstance(value, dict):
        return None
    call = cast(dict[str, object], value)
    if isinstance(inner := call.get("function"), dict):
        call = cast(dict[str, object], inner)
    name = next(
        (word for key in ("name", "tool", "tool_name", "function", "action") if isinstance(word := call.get(key), str)),
        "",
    )
    given = next((call[key] for key in _ARGUMENTS if key in call), None)
    if isinstance(given, str):
        given = next((found.value for found in json_values(given)), None)
    if name and isinstance(given, dict):
        return name, cast(Json, given)
    if not name and any(isinstance(call.get(key), list) for key in _LIST_NAMES):
        return _ADD, cast(Json, call)
    return None


def _is_draft(entry: object) -> bool:
    return isinstance(entry, dict) and "value" in entry


def _in_xml(text: str) -> FoundCall | None:
    """Return the first call as ``<function=name><parameter=field>value</parameter></function>``; values may be JSON."""
    start = _XML_CALL.search(text)
    if start is None:
        return None
    arguments: Json = {}
    for field, raw in islice(_XML_VALUE.findall(text, start.end()), _MOST_CALLS):
        listed = next((found.value for found in json_values(raw.strip())), None)
        arguments[field] = raw.strip() if listed is None else cast(Json, listed)
    return FoundCall(start[1], arguments, "fallback") if arguments else None


def _behind_its_name(text: str) -> FoundCall | None:
    """Return the first call as ``name{…}``, ``[TOOL_CALLS]name[ARGS]{…}`` or ``<function=name>{…}``."""
    for named in islice(_NAMED.finditer(text), _MOST_CALLS):
        given = next((found for found in json_values(text[named.end() :]) if isinstance(found.value, dict)), None)
        if given is not None:
            path: ParsePath = "repaired" if given.path == "repaired" else "fallback"
            return FoundCall(named[1], cast(Json, given.value), path)
    return None


def _in_python(text: str) -> FoundCall | None:
    """Return the first call of a tool with literal keyword arguments, as ``add_memory(summary="…", …)``."""
    for start in islice(_PYTHON_CALL.finditer(text), _MOST_CALLS):
        for end in _ends(text, start.end()):
            try:
                node = ast.parse(text[start.start() : end], mode="eval").body
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    values = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
                    return FoundCall(node.func.id, cast(Json, values), "repaired")
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    return None


def _ends(text: str, start: int) -> Collection[int]:
    """Return where the brackets that may close a call end."""
    return [found.end() for found in islice(re.compile(r"\)").finditer(text, start), _MOST_CALLS)]
