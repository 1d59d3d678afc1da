"""Reads the events of a streamed chat completion and gives them OpenAI's form, with a reader for each choice."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import orjson
from pydantic import JsonValue

from memloop.sse import data_of
from memloop.wire.base import has_not_numbers, object_in, objects_in, parsed_object
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError
from memloop_clients.replies import Reply, fault_in, has_head, head_of, index_of

_DONE_DATA: Final = b"[DONE]"
_DONE: Final = b"data: [DONE]\n\n"
_CHOICES: Final = b'"choices"'
_KIND_OF_CHUNK: Final = "chat.completion.chunk"
_KIND: Final = b"event:"
_FAILED_LINE: Final = b"error:"
"""llama.cpp's older way to report a failure in a stream: a field of its own."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An event for a client. ``chunk`` is its JSON, empty without any."""

    raw: bytes
    chunk: Json

    @property
    def is_done(self) -> bool:
        return self.raw == _DONE or data_of(self.raw) == _DONE_DATA

    @property
    def is_usage(self) -> bool:
        """Whether it reports the usage and nothing else."""
        return self.chunk.get("choices") == [] and isinstance(self.chunk.get("usage"), dict)


class ReplyStream:
    """One streamed chat completion. ``offered`` are the names of the tools that the request has."""

    def __init__(self, offered: Collection[str] = (), *, model: str = "") -> None:
        """``model`` is the name of the model where the engine does not give it."""
        self._offered = offered
        self._model = model
        self._replies: dict[int, Reply] = {}
        self._head: Json = {}
        self._is_bare = False
        """Whether the chunks lack fields of OpenAI's, so that each is completed."""
        self.failed = False
        """Whether the engine has reported a failure: what follows is no answer."""
        self.done = False

    @property
    def may_skip_texts(self) -> bool:
        """Whether an event that adds nothing but text to the first choice needs no reading."""
        return 0 in self._replies and not self._replies[0].is_open and not self.failed and not self._is_bare

    @property
    def is_answered(self) -> bool:
        """Whether the first choice is complete, and no failure has come."""
        first = self._replies.get(0)
        return first is not None and first.finish_reason is not None and not self.failed

    def read(self, event: bytes) -> list[StreamEvent]:
        """Read one event; return it as clients get it, or several, or none. A failure is an event with ``error``."""
        data = data_of(event)
        if data == _DONE_DATA:
            return self._end(StreamEvent(event, {}))
        chunk, kind = parsed_object(data), ""
        if event.startswith(_KIND):
            kind = event.partition(b"\n")[0].removeprefix(_KIND).strip().decode("utf-8", "replace")
        lines = [] if data else event.splitlines()
        if failed := [line.removeprefix(_FAILED_LINE) for line in lines if line.startswith(_FAILED_LINE)]:
            chunk, kind = parsed_object(b"".join(map(bytes.strip, failed))), "error"
        if self.failed:
            return []
        if not chunk and data.startswith(b"{") and data.strip() != b"{}":
            return [self._failure(EngineError("an event of the engine's stream is not JSON"))]
        try:
            if (fault := fault_in(chunk, kind=kind)) is None:
                return self._chunk(_event(chunk) if chunk and has_not_numbers(data) else StreamEvent(event, chunk))
        except EngineError as broken:
            fault = broken
        return [self._failure(fault, StreamEvent(event, chunk))]

    def skipped(self, events: bytes) -> None:
        """Note events that add nothing but text, in OpenAI's form."""
        if not self._replies and _CHOICES in events:
            chunk = parsed_object(data_of(next(event for event in events.split(b"\n\n") if _CHOICES in event)))
            self._begin(chunk)
            for choice in objects_in(chunk.get("choices")):
                self._reply(index_of(choice))

    def close(self) -> list[StreamEvent]:
        """Return the missing end of a stream that the engine has closed. Raises EngineError if it is incomplete."""
        if self.done or self.failed:
            return []
        if not self.is_answered:
            raise EngineError("the engine closed the stream before the answer was complete")
        self.done = True
        return [StreamEvent(_DONE, {})]

    def _end(self, event: StreamEvent) -> list[StreamEvent]:
        self.done = True
        if self.failed:
            return [event]
        if not self._replies:
            return [self._failure(EngineError("the engine ended the stream without an answer")), event]
        try:
            ends = [(index, reply.end()) for index, reply in self._replies.items()]
            choices: list[Json] = [{**choice, "index": index} for index, end in ends for choice in end]
        except EngineError as broken:
            return [self._failure(broken), event]
        return [*map(self._with_choice, choices), event]

    def _chunk(self, event: StreamEvent) -> list[StreamEvent]:
        self._begin(event.chunk)
        if "choices" in event.chunk and not has_head(event.chunk):
            self._is_bare, event = True, _event({**event.chunk, **self._head})
        chunk, given = event.chunk, objects_in(event.chunk.get("choices"))
        self._is_bare = self._is_bare or any("index" not in choice for choice in given)
        if not given:
            is_odd = not isinstance(chunk.get("choices", []), list)
            return [] if is_odd and not chunk.get("usage") else [_event({**chunk, "choices": []}) if is_odd else event]
        shown = [each for choice in given for each in self._reply(index_of(choice)).take(choice)]
        if shown == given:
            return [event]
        if len(shown) <= 1 or len({str(each["index"]) for each in shown}) == len(shown):
            if not shown and not chunk.get("usage"):
                return []
            return [_event({**chunk, "choices": list[JsonValue](shown)})]
        *earlier, last = shown
        return [*map(self._with_choice, earlier), _event({**chunk, "choices": [last]})]

    def _begin(self, chunk: Json) -> None:
        """Take the fields of the first chunk for those that we make."""
        if "choices" in chunk and not self._head:
            self._head = head_of(chunk, _KIND_OF_CHUNK, self._model)
            if isinstance(chunk.get("system_fingerprint"), str):
                self._head["system_fingerprint"] = chunk["system_fingerprint"]

    def _reply(self, index: int) -> Reply:
        if index not in self._replies:
            self._replies[index] = Reply(self._offered)
        return self._replies[index]

    def _with_choice(self, choice: Json) -> StreamEvent:
        return _event({**(self._head or head_of({}, _KIND_OF_CHUNK, self._model)), "choices": [choice]})

    def _failure(self, fault: EngineError, event: StreamEvent | None = None) -> StreamEvent:
        self.failed = True
        if event is not None and _is_openais(object_in(event.chunk.get("error"))):
            return event
        error: Json = {"message": fault.message, "type": fault.type, "param": fault.param, "code": fault.code}
        return _event({"error": error}, b"event: error\n")


def _is_openais(error: Json) -> bool:
    """Whether an error has OpenAI's fields: some engines have a number as its code, and no type."""
    texts = all(isinstance(error.get(name), str) for name in ("message", "type"))
    return texts and all(isinstance(error.get(name, ""), str | None) for name in ("param", "code"))


def _event(chunk: Json, head: bytes = b"") -> StreamEvent:
    try:
        return StreamEvent(b"%bdata: %b\n\n" % (head, orjson.dumps(chunk)), chunk)
    except orjson.JSONEncodeError as error:
        raise EngineError("the engine's answer is nested too deeply") from error
