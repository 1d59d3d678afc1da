"""Makes one response of an engine's chat completion, whole or as a stream, and stores it before it ends."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import JsonValue

from gateway.chat import ChatSink
from gateway.engine import Meter, More, Relay
from gateway.responses.assembly import Assembly
from gateway.responses.file_search import Searched
from gateway.responses.keeping import Keeping
from gateway.responses.requests import Asked
from gateway.responses.tools import Offered, shown_tools
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError
from memloop_service.http import Sink, object_in, objects_in

_REPEATED: Final = {
    *("instructions", "max_output_tokens", "max_tool_calls", "model"),
    *("previous_response_id", "safety_identifier", "user"),
}
_REPEATED_EXTRA: Final = ("temperature", "top_p", "service_tier", "prompt_cache_key", "prompt_cache_retention")
"""Fields that the engine reads and the gateway does not."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A response that is being made: every field that the answer does not change."""

    head: Json

    @property
    def id(self) -> str:
        return str(self.head["id"])

    def item_id(self, prefix: str, place: int) -> str:
        return f"{prefix}_{self.id.removeprefix('resp_')}{place:04x}"

    def waiting(self, status: Literal["queued", "in_progress"]) -> Json:
        """Return the response before its answer: it waits for a worker, or for the engine."""
        return {**self.head, "status": status, "output": [], "usage": None}

    def answered(self, assembly: Assembly, usage: Json) -> Json:
        """Return the response with its answer."""
        reason = assembly.incomplete
        ended: Json = {
            **self.head,
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "output": list(assembly.output),
            "usage": usage_of(usage),
        }
        if reason is None:
            ended["completed_at"] = int(time.time())
        return ended

    def failed(self, assembly: Assembly, code: str, message: str) -> Json:
        """Return the response whose answer broke off. It is not kept."""
        assembly.broken()
        error: Json = {"code": code, "message": message}
        return {**self.head, "status": "failed", "error": error, "output": list(assembly.output), "store": False}


def draft_of(asked: Asked, response_id: str) -> Draft:
    request = asked.request
    given = request.model_extra or {}
    head: Json = {
        "id": response_id,
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": request.background is True,
        "conversation": None if request.conversation_id is None else {"id": request.conversation_id},
        "error": None,
        "incomplete_details": None,
        "metadata": dict(request.metadata or {}),
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "reasoning": {"effort": asked.reasoning.effort, "summary": asked.reasoning.summary},
        "store": request.stores,
        "text": asked.text.model_dump(exclude_none=True, by_alias=True),
        "tool_choice": request.tool_choice or "auto",
        "tools": [*shown_tools(asked.tools)],
        "top_logprobs": request.top_logprobs or 0,
        "truncation": "disabled",
        "usage": None,
        **request.model_dump(include=_REPEATED),
        **{name: given.get(name) for name in _REPEATED_EXTRA},
    }
    return Draft(head)


def usage_of(usage: Json) -> JsonValue:
    """Return a chat completion's usage as a response's, or None without one."""
    asked, replied = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(asked, int) or not isinstance(replied, int):
        return None
    read, thought = object_in(usage.get("prompt_tokens_details")), object_in(usage.get("completion_tokens_details"))
    return {
        "input_tokens": asked,
        "input_tokens_details": {
            "cached_tokens": read.get("cached_tokens") or 0,
            "cache_write_tokens": read.get("cache_write_tokens") or 0,
        },
        "output_tokens": replied,
        "output_tokens_details": {"reasoning_tokens": thought.get("reasoning_tokens") or 0},
        "total_tokens": usage.get("total_tokens") or asked + replied,
    }


class Making:
    """One response. ``keeping`` is None for one that is kept nowhere."""

    def __init__(
        self,
        asked: Asked,
        draft: Draft,
        keeping: Keeping | None = None,
        *,
        tools: Mapping[str, Offered],
        search: Searched | None = None,
    ) -> None:
        """``tools`` are the functions that the engine was given, ``search`` is what was found for it."""
        self.draft = draft
        self.assembly = Assembly(
            draft.item_id,
            logprobs=asked.request.wants_logprobs,
            sums_up=asked.reasoning.asks_for_summary,
            tools=tools,
            cites=search.annotations if search is not None else lambda text: [],
        )
        self.first_events = self.assembly.search_made(search.item(draft.item_id("fs", 0))) if search is not None else []
        self.keeping = keeping
        self._was_kept = False

    def fed(self, answer: Json) -> list[Json]:
        """Take a whole chat completion; return the output's events. Raises EngineError for one without a message."""
        choices = objects_in(answer.get("choices"))
        if not choices or not isinstance(choices[0].get("message"), dict):
            raise EngineError("the engine's answer is not a chat completion")
        return [*self.first_events, *self.assembly.feed(choices[0], object_in(choices[0]["message"]))]

    def whole(self, answer: Json) -> Json:
        """Return the response of a whole chat completion. Raises as ``fed`` does."""
        self.fed(answer)
        return self.draft.answered(self.assembly, object_in(answer.get("usage")))

    async def kept(self, response: Json) -> Json:
        """Keep a response and return it as its client gets it."""
        if self.keeping is not None:
            self._was_kept = await self.keeping.keep(response)
            if not self._was_kept:
                response["store"] = False
        return response

    async def end(self) -> None:
        """Give back the quota of a response that was not kept."""
        if self.keeping is not None and not self._was_kept:
            await self.keeping.give_up()

    def streamed(self, meter: Meter, relay: Relay) -> Relay:
        """Return a relay that sends the response's events instead of the chat's."""

        async def stream(more: More, out: Sink) -> None:
            events = _ResponseStream(self, meter, out)
            await events.begin()
            try:
                await relay(more, events)
            finally:
                await events.keep_if_answered()
                await self.end()

        return stream

    async def ended(self, usage: Json, memory: Json) -> Json:
        """Return the response at the end of its stream, kept."""
        response = self.draft.answered(self.assembly, usage)
        if memory:
            response["memory"] = memory
        return await self.kept(response)


class _ResponseStream(ChatSink):
    """Takes a chat's events and sends a response's."""

    def __init__(self, making: Making, meter: Meter, out: Sink) -> None:
        super().__init__(out, meter)
        self._making = making
        self._number = 0

    async def begin(self) -> None:
        """Send the events before the engine's first."""
        response = self._making.draft.waiting("in_progress")
        for name in ("created", "in_progress"):
            self.add({"type": f"response.{name}", "response": response})
        self.add(*self._making.first_events)
        await self.flush()

    def takes_texts(self) -> bool:
        return not self.over and self._making.assembly.grows_text

    def of_texts(self, texts: Sequence[str]) -> bytes:
        number = self._number
        self._number += len(texts)
        with self.meter.ours():
            return self._making.assembly.feed_texts(texts, number)

    def take(self, choice: Json) -> None:
        self.add(*self._making.assembly.feed(choice, object_in(choice.get("delta"))))

    async def ended(self) -> None:
        if self._making.assembly.finish_reason is None:
            self.failed({"error": {"message": "the engine closed the stream before the answer was complete"}})
            return
        if self._making.keeping is not None and self.shown:
            await self.flush()  # its client need not wait for the end of the text until the response is kept
        response = await self._making.ended(self.usage, self.memory)
        self.add({"type": f"response.{response['status']}", "response": response})

    def failed(self, chunk: Json) -> None:
        error = object_in(chunk["error"])
        limited = str(error.get("code")) in {"429", "rate_limit_exceeded"}
        kind, message = "rate_limit_exceeded" if limited else "server_error", error.get("message")
        response = self._making.draft.failed(self._making.assembly, kind, str(message or "the engine failed"))
        self.add({"type": "response.failed", "response": response})

    async def keep_if_answered(self) -> None:
        """Keep a complete answer whose client left before the last event."""
        if not self.over and self._making.assembly.finish_reason is not None:
            self.over = True
            await self._making.ended(self.usage, self.memory)

    def add(self, *events: Json) -> None:
        for event in events:
            event["sequence_number"] = self._number
            self._number += 1
        super().add(*events)
