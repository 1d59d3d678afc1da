"""Items of a response that still grow, and their events in a stream, without their place in it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue
from pydantic_core import from_json

from gateway.responses.tools import Kind, Offered
from memloop.wire.chat import Json
from memloop_service.http import objects_in

SUMMARY: Final = "summary_text"


class OpenItem:
    """An item that still grows."""

    def __init__(self, item: Json) -> None:
        self.item = item

    def begin(self) -> list[Json]:
        """Add the item."""
        return [{"type": "response.output_item.added", "item": dict(self.item)}]

    def parts_done(self) -> list[Json]:
        """End what is open in the item."""
        return []

    def end(self, status: str) -> list[Json]:
        """End the item."""
        events = self.parts_done()
        self.item["status"] = status
        return [*events, {"type": "response.output_item.done", "item": dict(self.item)}]


class Parts(OpenItem):
    """An item of texts: a message with its text and its refusal, or reasoning, whose parts may be a summary."""

    def __init__(self, item: Json, cites: Callable[[str], list[Json]]) -> None:
        """``cites`` returns the annotations of a text."""
        super().__init__({**item, "content": []})
        self._cites = cites
        self._done: list[Json] = []
        self._kind = ""
        self._field = ""
        self._texts: list[str] = []
        self._logprobs: list[Json] = []

    def more(self, kind: str, field: str, text: str, logprobs: Sequence[Json] = ()) -> list[Json]:
        """Add text to the part of this kind, which begins if it is not the open one."""
        events: list[Json] = []
        if self._kind != kind:
            events = self.parts_done()
            self._kind, self._field = kind, field
            part = self._part("")
            events.append({"type": f"{self._of_part}.added", self._index: len(self._done), "part": part})
        self._texts.append(text)
        delta: Json = {"type": f"{self._of_text}.delta", self._index: len(self._done), "delta": text}
        if kind == "output_text":
            self._logprobs.extend(logprobs)
            delta["logprobs"] = list(logprobs)
        return [*events, delta]

    @property
    def is_text(self) -> bool:
        """Whether the open part is a message's text."""
        return self._kind == "output_text"

    def more_texts(self, texts: Sequence[str]) -> int:
        """Add plain texts to the open part; return the part's place."""
        self._texts.extend(texts)
        return len(self._done)

    def parts_done(self) -> list[Json]:
        """End the open part."""
        if not self._kind:
            return []
        text, place = "".join(self._texts), {self._index: len(self._done)}
        part = self._part(text)
        done: Json = {"type": f"{self._of_text}.done", **place, self._field: text}
        if "logprobs" in part:
            done["logprobs"] = part["logprobs"]
        part_done: Json = {"type": f"{self._of_part}.done", **place, "part": part}
        annotated: list[Json] = [
            {
                "type": "response.output_text.annotation.added",
                "content_index": len(self._done),
                "annotation_index": number,
                "annotation": annotation,
            }
            for number, annotation in enumerate(objects_in(part.get("annotations")))
        ]
        events = [*annotated, done, part_done]
        self._done.append(part)
        self.item["summary" if self._kind == SUMMARY else "content"] = list(self._done)
        self._kind, self._texts, self._logprobs = "", [], []
        return events

    @property
    def _of_text(self) -> str:
        return "response.reasoning_summary_text" if self._kind == SUMMARY else f"response.{self._kind}"

    @property
    def _of_part(self) -> str:
        return "response.reasoning_summary_part" if self._kind == SUMMARY else "response.content_part"

    @property
    def _index(self) -> str:
        return "summary_index" if self._kind == SUMMARY else "content_index"

    def _part(self, text: str) -> Json:
        if self._kind == "output_text":
            logprobs = list(self._logprobs) if text else []
            return {"type": "output_text", "text": text, "annotations": [*self._cites(text)], "logprobs": [*logprobs]}
        return {"type": self._kind, self._field: text}


class OpenCall(OpenItem):
    """A call of a tool of the client. Only a function's arguments are streamed as they come."""

    def __init__(self, kind: Kind, item: Json) -> None:
        super().__init__(item)
        self._kind: Kind = kind
        self._texts: list[str] = []

    def more(self, text: str) -> list[Json]:
        """Add to the arguments."""
        self._texts.append(text)
        return [{"type": "response.function_call_arguments.delta", "delta": text}] if self._kind == "function" else []

    def parts_done(self) -> list[Json]:
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


def open_call(tool: Offered | None, call_id: str, name: str) -> OpenCall:
    """Return a call that has begun, without its id. A name that no tool has is a function's."""
    kind: Kind = "function" if tool is None else tool.kind
    name = name if tool is None else tool.name
    begins: Mapping[Kind, Json] = {
        "function": {"type": "function_call", "name": name, "arguments": ""},
        "custom": {"type": "custom_tool_call", "name": name, "input": ""},
        "local_shell": {"type": "local_shell_call", "action": _action_in("")},
        "tool_search": {"type": "tool_search_call", "execution": "client", "arguments": {}},
    }
    item: Json = {"status": "in_progress", "call_id": call_id, **begins[kind]}
    if tool is not None and tool.namespace is not None:
        item["namespace"] = tool.namespace
    return OpenCall(kind, item)


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
