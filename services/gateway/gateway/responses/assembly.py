"""Assembles the items of a response from an engine's chat completion, and the events that a stream has of them.

A whole answer is fed as one delta, so that it gets the same items as the stream of the same answer. The order of the
events is the public API's: an item is added, its parts grow, the parts are done, the item is done, then the next.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue
from pydantic_core import from_json

from gateway.responses.items import PREFIXES
from gateway.responses.tools import Kind, Offered
from memloop.wire.chat import Json, thinking_in
from memloop_service.http import json_text, object_in, objects_in

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a response is incomplete, by the engine's finish reason."""
_NEW: Final[Mapping[str, Json]] = {
    "message": {"status": "in_progress", "role": "assistant"},
    "reasoning": {"status": "in_progress", "summary": []},
}
"""The fields of an item that has just begun, by its type."""
_SUMMARY: Final = "summary_text"
_OF_CONTENT: Final = ("response.content_part", "content_index", "content")
_OF_KINDS: Final = {
    "output_text": ("response.output_text", "text", *_OF_CONTENT),
    "refusal": ("response.refusal", "refusal", *_OF_CONTENT),
    "reasoning_text": ("response.reasoning_text", "text", *_OF_CONTENT),
    _SUMMARY: (
        *("response.reasoning_summary_text", "text"),
        *("response.reasoning_summary_part", "summary_index", "summary"),
    ),
}
"""By the kind of a part: its texts' event and field, its own event, the name of its place, and the item's list."""


_TEXT_DELTA: Final = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","content_index":%d,"delta":%b,'
    b'"logprobs":[],"output_index":%d,"item_id":"%b","sequence_number":%d}\n\n'
)


class Parts:
    """An item of texts: a message with its text and its refusal, or reasoning, whose parts may be a summary.

    Its events, as those of a call, lack their place in the stream.
    """

    def __init__(self, item: Json, cites: Callable[[str], list[Json]]) -> None:
        """``cites`` returns the annotations of a text."""
        self.item: Json = {**item, "content": []}
        self.kind = ""
        """The open part's; empty without one."""
        self._cites = cites
        self._done: list[Json] = []
        self._texts: list[str] = []
        self._logprobs: list[Json] = []

    def more(self, kind: str, text: str, logprobs: Sequence[Json] = ()) -> list[Json]:
        """Add text to the part of this kind, which begins if it is not the open one."""
        of_text, _, of_part, index, _ = _OF_KINDS[kind]
        events: list[Json] = []
        if self.kind != kind:
            events = self.done()
            self.kind = kind
            events.append({"type": f"{of_part}.added", index: len(self._done), "part": self._part("")})
        self._texts.append(text)
        delta: Json = {"type": f"{of_text}.delta", index: len(self._done), "delta": text}
        if kind == "output_text":
            self._logprobs.extend(logprobs)
            delta["logprobs"] = list(logprobs)
        return [*events, delta]

    def more_texts(self, texts: Sequence[str]) -> int:
        """Add plain texts to the open part; return the part's place."""
        self._texts.extend(texts)
        return len(self._done)

    def done(self) -> list[Json]:
        if not self.kind:
            return []
        of_text, field, of_part, index, parts = _OF_KINDS[self.kind]
        text = "".join(self._texts)
        part, place = self._part(text), {index: len(self._done)}
        events: list[Json] = [
            {"type": "response.output_text.annotation.added", **place, "annotation_index": number, "annotation": one}
            for number, one in enumerate(objects_in(part.get("annotations")))
        ]
        done: Json = {"type": f"{of_text}.done", **place, field: text}
        if "logprobs" in part:
            done["logprobs"] = part["logprobs"]
        self._done.append(part)
        self.item[parts] = list(self._done)
        self.kind, self._texts, self._logprobs = "", [], []
        return [*events, done, {"type": f"{of_part}.done", **place, "part": part}]

    def _part(self, text: str) -> Json:
        if self.kind != "output_text":
            return {"type": self.kind, _OF_KINDS[self.kind][1]: text}
        logprobs = list(self._logprobs) if text else []
        return {"type": "output_text", "text": text, "annotations": [*self._cites(text)], "logprobs": [*logprobs]}


class OpenCall:
    """A call of a tool of the client. Only a function's arguments are streamed as they come."""

    def __init__(self, tool: Offered | None, call_id: str, name: str) -> None:
        """``name`` is the engine's; if no tool has it, it is a function's."""
        self._kind: Kind = "function" if tool is None else tool.kind
        self._texts: list[str] = []
        own = name if tool is None else tool.name
        begins: Mapping[Kind, Json] = {
            "function": {"type": "function_call", "name": own, "arguments": ""},
            "custom": {"type": "custom_tool_call", "name": own, "input": ""},
            "local_shell": {"type": "local_shell_call", "action": _action_in("")},
            "tool_search": {"type": "tool_search_call", "execution": "client", "arguments": {}},
        }
        self.item: Json = {"status": "in_progress", "call_id": call_id, **begins[self._kind]}
        if tool is not None and tool.namespace is not None:
            self.item["namespace"] = tool.namespace

    def more(self, text: str) -> list[Json]:
        self._texts.append(text)
        return [{"type": "response.function_call_arguments.delta", "delta": text}] if self._kind == "function" else []

    def done(self) -> list[Json]:
        """End the arguments. An input that is a text has one delta: it is known when those around it are complete."""
        arguments = "".join(self._texts)
        match self._kind:
            case "function":
                self.item["arguments"] = arguments
                done = "response.function_call_arguments.done"
                return [{"type": done, "name": self.item["name"], "arguments": arguments}]
            case "custom":
                text = _object_in(arguments).get("input")
                text = text if isinstance(text, str) else arguments  # a model that wrote no JSON meant the text itself
                self.item["input"] = text
                return [
                    {"type": "response.custom_tool_call_input.delta", "delta": text},
                    {"type": "response.custom_tool_call_input.done", "input": text},
                ]
            case "local_shell":
                self.item["action"] = _action_in(arguments)
            case "tool_search":
                self.item["arguments"] = _object_in(arguments)
        return []


def _action_in(arguments: str) -> Json:
    given = _object_in(arguments)
    command = given.get("command")
    words: list[JsonValue] = [
        str(word) for word in (command if isinstance(command, list) else [command]) if word is not None
    ]
    action: Json = {"type": "exec", "command": words, "env": {}}
    for name, kind in (("timeout_ms", int), ("working_directory", str)):
        if type(given.get(name)) is kind:  # clients read nothing or a value there, no null
            action[name] = given[name]
    return action


def _object_in(arguments: str) -> Json:
    """Parse the arguments; those that a limit has cut off are read as far as they go."""
    try:
        found: JsonValue = from_json(arguments, allow_partial="trailing-strings")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class Assembly:
    """The growing output of one response.

    ``new_id`` makes an item's id of its prefix and its place; ``tools`` are the functions that the engine was given;
    ``cites`` returns the annotations of a text; ``sums_up`` makes the reasoning a summary.
    """

    def __init__(
        self,
        new_id: Callable[[str, int], str],
        *,
        logprobs: bool = False,
        sums_up: bool = False,
        tools: Mapping[str, Offered] | None = None,
        cites: Callable[[str], list[Json]] = lambda text: [],
    ) -> None:
        self.output: list[Json] = []
        self.finish_reason: str | None = None
        self._new_id = new_id
        self._with_logprobs = logprobs
        self._sums_up = sums_up
        self._tools = tools or {}
        self._open: Parts | OpenCall | None = None
        self._cites = cites

    def search_made(self, item: Json) -> list[Json]:
        """Begin the output with a search of files; return its events."""
        where: Json = {"output_index": len(self.output), "item_id": item["id"]}
        steps: list[Json] = [
            {"type": f"response.file_search_call.{name}", **where} for name in ("in_progress", "searching", "completed")
        ]
        began: Json = {**item, "status": "in_progress", "results": None}
        added: Json = {"type": "response.output_item.added", "item": began, "output_index": len(self.output)}
        done: Json = {"type": "response.output_item.done", "item": item, "output_index": len(self.output)}
        self.output.append(item)
        return [added, *steps, done]

    def feed(self, choice: Json, delta: Json) -> list[Json]:
        """Take a delta of the choice, or its whole message; return its events."""
        events: list[Json] = []
        if thought := thinking_in(delta):
            events += self._more("reasoning", _SUMMARY if self._sums_up else "reasoning_text", thought)
        if text := _string(delta.get("content")):
            logprobs = objects_in(object_in(choice.get("logprobs")).get("content")) if self._with_logprobs else ()
            events += self._more("message", "output_text", text, logprobs)
        if refused := _string(delta.get("refusal")):
            events += self._more("message", "refusal", refused)
        for called in objects_in(delta.get("tool_calls")):
            function = object_in(called.get("function"))
            if "id" in called:
                name, place = str(function["name"]), len(self.output) + (self._open is not None)
                call = OpenCall(self._tools.get(name), str(called["id"]), name)
                call.item = {"id": self._new_id(PREFIXES[str(call.item["type"])], place), **call.item}
                if "extra_content" in called:
                    call.item["extra_content"] = called["extra_content"]
                events += self._begun(call)
            arguments, grows = _string(function.get("arguments")), self._open
            if arguments and isinstance(grows, OpenCall):
                events += self._placed(grows.more(arguments))
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self.finish_reason = reason
            events += self._ended("incomplete" if self.incomplete else "completed")
        return events

    @property
    def grows_text(self) -> bool:
        """Whether a message's text is open, and has no probabilities: ``feed_texts`` takes the next pieces of it."""
        return not self._with_logprobs and isinstance(self._open, Parts) and self._open.kind == "output_text"

    def feed_texts(self, texts: Sequence[str], number: int) -> bytes:
        """Take deltas that are nothing but text, while ``grows_text``; return their events from that number on."""
        grows = self._open
        if not isinstance(grows, Parts):
            return b""
        place, index, item_id = grows.more_texts(texts), len(self.output), str(grows.item["id"]).encode()
        return b"".join(
            _TEXT_DELTA % (place, json_text(text), index, item_id, at) for at, text in enumerate(texts, number)
        )

    @property
    def incomplete(self) -> str | None:
        """Why the answer is incomplete, or None."""
        return _INCOMPLETE.get(self.finish_reason or "")

    def broken(self) -> None:
        """Keep what there is of an answer that will not be finished."""
        self._ended("incomplete")

    def _more(self, item: str, kind: str, text: str, logprobs: Sequence[Json] = ()) -> list[Json]:
        grows, events = self._open, list[Json]()
        if not isinstance(grows, Parts) or grows.item["type"] != item:
            item_id = self._new_id(PREFIXES[item], len(self.output))
            grows = Parts({"id": item_id, "type": item, **_NEW[item]}, self._cites)
            events = self._begun(grows)
        return events + self._placed(grows.more(kind, text, logprobs))

    def _begun(self, item: Parts | OpenCall) -> list[Json]:
        ended = self._ended("completed")
        self._open = item
        return ended + self._placed([{"type": "response.output_item.added", "item": dict(item.item)}])

    def _ended(self, status: str) -> list[Json]:
        if (ends := self._open) is None:
            return []
        events = ends.done()
        ends.item["status"] = status
        events = self._placed([*events, {"type": "response.output_item.done", "item": dict(ends.item)}])
        self.output.append(ends.item)
        self._open = None
        return events

    def _placed(self, events: list[Json]) -> list[Json]:
        """Add the open item's place to its events."""
        index, open_item = len(self.output), self._open
        for event in events:
            event["output_index"] = index
            if open_item is not None and "item" not in event:
                event["item_id"] = open_item.item["id"]
        return events


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
