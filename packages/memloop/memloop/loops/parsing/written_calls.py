"""Tool calls that a model writes as text.

They are looked for in this order: in the text, as hermes ``<tool_call>``, as Qwen's ``<function=…>``, as JSON with or
without prose around it, as JSON behind the tool's name (Mistral, Llama), or as a call in Python; in the thinking, as
``<tool_call>`` only.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Final, TypeAlias, cast

from memloop.loops.parsing.json_values import ParsePath, entries_in, is_entry, json_values, read_json
from memloop.wire.chat import Json

_TAG: Final = re.compile(r"<tool_call>\s*")
_ADD: Final = "add_memory"
_TOOL: Final = r"(?:search|add|buffer|ignore)_memory"
_PYTHON_CALL: Final = re.compile(rf"\b{_TOOL}\(")
_CLOSING: Final = re.compile(r"\)")
_XML_CALL: Final = re.compile(rf"<function=({_TOOL})>")
_XML_VALUE: Final = re.compile(r"<parameter=(\w{1,64})>([^<]*)(?:</parameter>|$)")
_NAMED: Final = re.compile(rf"\b({_TOOL})\b" r"(?:\[ARGS\]|[^\w{}]){0,8}(?=\{)")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input", "action_input")
_MOST_CALLS: Final = 32
"""Written as text: a model that repeats one for ever must not keep the process busy."""
_MOST_ENDS: Final = 8
Call: TypeAlias = tuple[str, Json]
"""The name of a tool, and arguments that are an unchecked JSON object."""
Found: TypeAlias = tuple[Sequence[Call], ParsePath]
"""At least one call, and how they were found."""
_ReadCalls: TypeAlias = Callable[[dict[str, object] | list[object]], list[Call] | None]


def written_calls(text: str, thinking: str) -> Found | None:
    """Return the calls in a reply's text, or in its thinking."""
    return (
        _in_xml(text)
        or _in_json(text, _calls_in)
        or _behind_its_name(text)
        or _in_python(text)
        or _in_json(text, _drafts_in)
        or _in_json(thinking, _calls_in, tagged=True)
    )


def problem_of(text: str) -> tuple[str, bool]:
    """Return why a text holds no readable call, for the model and the record, and whether it begins one."""
    if not text:
        return "the reply was empty", False
    behind = _TAG.split(text, maxsplit=1)[-1]
    if any(found.path == "native" or len(behind) < len(text) for found in json_values(behind)):
        return 'a tool call is {"name": …, "arguments": {…}}', True
    if len(behind) < len(text):
        return "the tool call is cut off or not JSON", True
    return "the reply held no tool call", False


def _in_json(text: str, read: _ReadCalls, *, tagged: bool = False) -> Found | None:
    """Return the JSON values that are calls, behind tags if there are any. ``tagged`` wants a tag."""
    _, *behind = _TAG.split(text)
    if tagged and not behind:
        return None
    found, path = read_json("\n".join(behind) if behind else text, read)
    calls = [call for each in found for call in each]
    return _found(calls, "repaired" if path == "repaired" or len(calls) < len(behind) else "fallback")


def _calls_in(value: dict[str, object] | list[object]) -> list[Call] | None:
    calls = map(_call, value if isinstance(value, list) else [value])
    return [call for call in calls if call is not None] or None


def _drafts_in(value: dict[str, object] | list[object]) -> list[Call] | None:
    """Return the call that a list of memories alone stands for."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return None
    listed = value and all(map(is_entry, cast(list[dict[str, object]], value)))
    return [(_ADD, cast(Json, {"memory_list": value}))] if listed else None


def _call(value: object) -> Call | None:
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
    if not name and entries_in(call) is not None:
        return _ADD, cast(Json, call)
    return None


def _in_xml(text: str) -> Found | None:
    """Return the calls as ``<function=name><parameter=field>value</parameter></function>``; values may be JSON."""
    calls: list[Call] = []
    for name, rest in _parts(_XML_CALL, text):
        arguments: Json = {}
        for field, raw in islice(_XML_VALUE.findall(rest), _MOST_CALLS):
            listed = next((found.value for found in json_values(raw.strip())), None)
            arguments[field] = raw.strip() if listed is None else cast(Json, listed)
        calls += [(name, arguments)] if arguments else []
    return _found(calls, "fallback")


def _behind_its_name(text: str) -> Found | None:
    """Return the calls as ``name{…}``, ``[TOOL_CALLS]name[ARGS]{…}`` or ``<function=name>{…}``."""
    calls: list[Call] = []
    path: ParsePath = "fallback"
    for name, rest in _parts(_NAMED, text):
        given = next((found for found in json_values(rest) if isinstance(found.value, dict)), None)
        if given is not None:
            path = "repaired" if given.path == "repaired" else path
            calls.append((name, cast(Json, given.value)))
    return _found(calls, path)


def _parts(begins: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield the name in each beginning of a call, and the text up to the next one."""
    starts = list(islice(begins.finditer(text), _MOST_CALLS))
    for start, following in zip_longest(starts, starts[1:]):
        yield start[1], text[start.end() : following.start() if following else len(text)]


def _in_python(text: str) -> Found | None:
    """Return the calls of tools with literal keyword arguments, as ``add_memory(summary="…", …)``."""
    calls: list[Call] = []
    read_to = 0
    for start in islice(_PYTHON_CALL.finditer(text), _MOST_CALLS):
        ends = islice(_CLOSING.finditer(text, start.end()), _MOST_ENDS) if start.start() >= read_to else ()
        for end in [found.end() for found in ends]:
            try:
                node = ast.parse(text[start.start() : end], mode="eval").body
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    values = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
                    as_json = json.loads(json.dumps(values, default=_as_list))  # names are texts, sets are lists
                    calls.append((node.func.id, cast(Json, as_json)))
                    read_to = end
                    break
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
    return _found(calls, "repaired")


def _as_list(value: object) -> list[object]:
    """Return a set of Python as a list, always in the same order. Raises TypeError for what JSON has no place for."""
    if isinstance(value, set):
        return sorted(cast(set[object], value), key=repr)
    raise TypeError(type(value).__name__)


def _found(calls: Sequence[Call], path: ParsePath) -> Found | None:
    return (calls, path) if calls else None
