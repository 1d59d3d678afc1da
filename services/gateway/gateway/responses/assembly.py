"""Assembles the items of a response from an engine's chat completion, and the events that a stream has of them.

A whole answer is fed as one delta, so that it gets the same items as the stream of the same answer. The order of the
events is the public API's: an item is added, its parts grow, the parts are done, the item is done, then the next.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from gateway.http import json_text, object_in, objects_in
from gateway.responses.items import PREFIXES
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a response is incomplete, by the engine's finish reason."""
_BROKEN_OFF: Final = frozenset({"abort", "error"})


class _OpenItem:
    """An item that still grows. Its methods yield events without their place in the stream."""

    def __init__(self, item: Json) -> None:
        self.item = item

    def begin(self) -> Iterator[Json]:
        """Add the item."""
        yield {"type": "response.output_item.added", "item": dict(self.item)}

    def parts_done(self) -> Iterator[Json]:
        """End what is open in the item."""
        yield from ()

    def end(self, status: str) -> Iterator[Json]:
        """End the item."""
        yield from self.parts_done()
        self.item["status"] = status
        yield {"type": "response.output_item.done", "item": dict(self.item)}


class _Parts(_OpenItem):
    """An item of texts: a message with its text and its refusal, or reasoning."""

    def __init__(self, item: Json) -> None:
        super().__init__({**item, "content": []})
        self._done: list[Json] = []
        self._kind = ""
        self._field = ""
        self._texts: list[str] = []
        self._logprobs: list[Json] = []

    def more(self, kind: str, field: str, text: str, logprobs: Sequence[Json] = ()) -> Iterator[Json]:
        """Add text to the part of this kind, which begins if it is not the open one."""
        if self._kind != kind:
            yield from self.parts_done()
            self._kind, self._field = kind, field
            yield {"type": "response.content_part.added", "content_index": len(self._done), "part": self._part("")}
        self._texts.append(text)
        delta: Json = {"type": f"response.{kind}.delta", "content_index": len(self._done), "delta": text}
        if kind == "output_text":
            self._logprobs.extend(logprobs)
            delta["logprobs"] = list(logprobs)
        yield delta

    def parts_done(self) -> Iterator[Json]:
        """End the open part."""
        if not self._kind:
            return
        text, index = "".join(self._texts), len(self._done)
        part = self._part(text)
        done: Json = {"type": f"response.{self._kind}.done", "content_index": index, self._field: text}
        yield done | ({"logprobs": part["logprobs"]} if "logprobs" in part else {})
        yield {"type": "response.content_part.done", "content_index": index, "part": part}
        self._done.append(part)
        self.item["content"] = list(self._done)
        self._kind, self._texts, self._logprobs = "", [], []

    def _part(self, text: str) -> Json:
        if self._kind == "output_text":
            logprobs = list(self._logprobs) if text else []
            return {"type": "output_text", "text": text, "annotations": [], "logprobs": list(logprobs)}
        return {"type": self._kind, self._field: text}


class _Call(_OpenItem):
    """A function call."""

    def __init__(self, item: Json, index: JsonValue) -> None:
        super().__init__({**item, "arguments": ""})
        self._index = index
        self._texts: list[str] = []

    def is_called(self, index: JsonValue, name: str, call_id: str) -> bool:
        """Return whether a delta belongs to this call; some engines number every call 0."""
        return index == self._index and not (name and call_id and call_id != self.item["call_id"])

    def more(self, text: str) -> Iterator[Json]:
        """Add to the arguments."""
        self._texts.append(text)
        yield {"type": "response.function_call_arguments.delta", "delta": text}

    def parts_done(self) -> Iterator[Json]:
        """End the arguments."""
        self.item["arguments"] = "".join(self._texts)
        yield {
            "type": "response.function_call_arguments.done",
            "name": self.item["name"],
            "arguments": self.item["arguments"],
        }


class Assembly:
    """The growing output of one response. ``new_id`` makes an item's id of its prefix and its place."""

    def __init__(self, new_id: Callable[[str, int], str], *, logprobs: bool = False) -> None:
        self.output: list[Json] = []
        self.finish_reason: str | None = None
        self._new_id = new_id
        self._with_logprobs = logprobs
        self._open: _OpenItem | None = None

    def feed(self, choice: Json, delta: Json) -> list[Json]:
        """Take a delta of the choice, or its whole message; return its events. Raises EngineError."""
        events = list(self._grown(choice, delta))
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            if reason in _BROKEN_OFF:
                raise EngineError(f"the engine ended its reply early ({reason})")
            self.finish_reason = reason
            events += self._ended("incomplete" if self.incomplete else "completed")
        return events

    @property
    def incomplete(self) -> str | None:
        """Why the answer is incomplete, or None."""
        return _INCOMPLETE.get(self.finish_reason or "")

    def broken(self) -> None:
        """Keep what there is of an answer that will not be finished."""
        list(self._ended("incomplete"))

    def text(self) -> str:
        """Return the answer's text."""
        messages = (item for item in self.output if item["type"] == "message")
        return "".join(str(part.get("text", "")) for item in messages for part in objects_in(item["content"]))

    def _grown(self, choice: Json, delta: Json) -> Iterator[Json]:
        if thought := _string(delta.get("reasoning_content")) or _string(delta.get("reasoning")):
            yield from self._more("reasoning", "reasoning_text", "text", thought)
        if text := _string(delta.get("content")):
            yield from self._more("message", "output_text", "text", text, self._logprobs(choice))
        if refused := _string(delta.get("refusal")):
            yield from self._more("message", "refusal", "refusal", refused)
        for place, called in enumerate(objects_in(delta.get("tool_calls"))):
            yield from self._called(called, place)

    def _more(self, item: str, kind: str, field: str, text: str, logprobs: Sequence[Json] = ()) -> Iterator[Json]:
        grows = self._open
        if not isinstance(grows, _Parts) or grows.item["type"] != item:
            prefix = PREFIXES[item]
            grows = _Parts({"id": self._new_id(prefix, len(self.output)), "type": item, **_NEW[item]})
            yield from self._begun(grows)
        yield from self._placed(grows.more(kind, field, text, logprobs))

    def _called(self, called: Json, place: int) -> Iterator[Json]:
        index, function = called.get("index", place), object_in(called.get("function"))
        name, call_id = _string(function.get("name")), _string(called.get("id"))
        grows = self._open
        if not isinstance(grows, _Call) or not grows.is_called(index, name, call_id):
            if not name:
                raise EngineError("the engine mixed up its function calls")
            grows = _Call(self._new_call(called, name, call_id), index)
            yield from self._begun(grows)
        if arguments := _arguments(function.get("arguments")):
            yield from self._placed(grows.more(arguments))

    def _new_call(self, called: Json, name: str, call_id: str) -> Json:
        place = len(self.output) + (self._open is not None)
        item: Json = {
            "id": self._new_id("fc", place),
            "type": "function_call",
            "status": "in_progress",
            "call_id": call_id or self._new_id("call", place),
            "name": name,
        }
        extra = called.get("extra_content")
        return item if extra is None else {**item, "extra_content": extra}

    def _begun(self, item: _OpenItem) -> Iterator[Json]:
        yield from self._ended("completed")
        self._open = item
        yield from self._placed(item.begin())

    def _ended(self, status: str) -> Iterator[Json]:
        if self._open is not None:
            yield from self._placed(self._open.end(status))
            self.output.append(self._open.item)
            self._open = None

    def _placed(self, events: Iterator[Json]) -> Iterator[Json]:
        index, open_item = len(self.output), self._open
        for event in events:
            whose: Json = {} if "item" in event or open_item is None else {"item_id": open_item.item["id"]}
            yield {**event, "output_index": index, **whose}

    def _logprobs(self, choice: Json) -> Sequence[Json]:
        return objects_in(object_in(choice.get("logprobs")).get("content")) if self._with_logprobs else ()


_NEW: Final[Mapping[str, Json]] = {
    "message": {"status": "in_progress", "role": "assistant"},
    "reasoning": {"status": "in_progress", "summary": []},
}
"""The fields of an item that has just begun, by its type."""


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: JsonValue) -> str:
    """Return the arguments as JSON text; some engines send the object."""
    return value if isinstance(value, str) else "" if value is None else json_text(value).decode()
