"""Assembles the items of a response from an engine's chat completion, and the events that a stream has of them.

A whole answer is fed as one delta, so that it gets the same items as the stream of the same answer. The order of the
events is the public API's: an item is added, its parts grow, the parts are done, the item is done, then the next.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gateway.responses.items import PREFIXES
from gateway.responses.open_items import SUMMARY, OpenCall, OpenItem, Parts, open_call
from gateway.responses.tools import Offered
from memloop.wire.chat import Json, thinking_in
from memloop_service.http import json_text, object_in, objects_in

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a response is incomplete, by the engine's finish reason."""

_TEXT_DELTA: Final = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","content_index":%d,"delta":%b,'
    b'"logprobs":[],"output_index":%d,"item_id":"%b","sequence_number":%d}\n\n'
)


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
        self._open: OpenItem | None = None
        self._cites = cites

    def search_made(self, item: Json) -> list[Json]:
        """Begin the output with a search of files; return its events."""
        where: Json = {"output_index": len(self.output), "item_id": item["id"]}
        steps: list[Json] = [
            {"type": f"response.file_search_call.{name}", **where} for name in ("in_progress", "searching", "completed")
        ]
        index: Json = {"output_index": len(self.output)}
        began: Json = {**item, "status": "in_progress", "results": None}
        self.output.append(item)
        added: Json = {"type": "response.output_item.added", "item": began, **index}
        return [added, *steps, {"type": "response.output_item.done", "item": item, **index}]

    def feed(self, choice: Json, delta: Json) -> list[Json]:
        """Take a delta of the choice, or its whole message; return its events."""
        events: list[Json] = []
        if thought := thinking_in(delta):
            events += self._more("reasoning", SUMMARY if self._sums_up else "reasoning_text", "text", thought)
        if text := _string(delta.get("content")):
            logprobs = objects_in(object_in(choice.get("logprobs")).get("content")) if self._with_logprobs else ()
            events += self._more("message", "output_text", "text", text, logprobs)
        if refused := _string(delta.get("refusal")):
            events += self._more("message", "refusal", "refusal", refused)
        for called in objects_in(delta.get("tool_calls")):
            function = object_in(called.get("function"))
            if "id" in called:
                name, place = str(function["name"]), len(self.output) + (self._open is not None)
                call = open_call(self._tools.get(name), str(called["id"]), name)
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
        return not self._with_logprobs and isinstance(self._open, Parts) and self._open.is_text

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

    def text(self) -> str:
        """Return the answer's text."""
        messages = (item for item in self.output if item["type"] == "message")
        return "".join(str(part.get("text", "")) for item in messages for part in objects_in(item["content"]))

    def _more(self, item: str, kind: str, field: str, text: str, logprobs: Sequence[Json] = ()) -> list[Json]:
        grows, events = self._open, list[Json]()
        if not isinstance(grows, Parts) or grows.item["type"] != item:
            item_id = self._new_id(PREFIXES[item], len(self.output))
            grows = Parts({"id": item_id, "type": item, **_NEW[item]}, self._cites)
            events = self._begun(grows)
        return events + self._placed(grows.more(kind, field, text, logprobs))

    def _begun(self, item: OpenItem) -> list[Json]:
        ended = self._ended("completed")
        self._open = item
        return ended + self._placed(item.begin())

    def _ended(self, status: str) -> list[Json]:
        if self._open is None:
            return []
        events = self._placed(self._open.end(status))
        self.output.append(self._open.item)
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


_NEW: Final[Mapping[str, Json]] = {
    "message": {"status": "in_progress", "role": "assistant"},
    "reasoning": {"status": "in_progress", "summary": []},
}
"""The fields of an item that has just begun, by its type."""


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
