"""The response object: what was asked, as the public API repeats it, and the engine's answer."""

import time
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import JsonValue

from gateway.responses.assembly import Assembly
from gateway.responses.requests import Asked
from gateway.responses.tools import shown_tools
from memloop.wire.chat import ChatMemory, Json
from memloop_service.http import object_in

_REPEATED: Final = {
    *("instructions", "max_output_tokens", "max_tool_calls", "model"),
    *("previous_response_id", "safety_identifier", "user"),
}
_REPEATED_EXTRA: Final = ("temperature", "top_p", "service_tier", "prompt_cache_key", "prompt_cache_retention")
"""Fields that the engine reads and the gateway does not."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A response that is being made: its id, and every field that the answer does not change."""

    id: str
    head: Json

    def item_id(self, prefix: str, place: int) -> str:
        """Name an item of the output."""
        return f"{prefix}_{self.id.removeprefix('resp_')}{place:04x}"

    def waiting(self, status: Literal["queued", "in_progress"]) -> Json:
        """Return the response before its answer: it waits for a worker, or for the engine."""
        return {**self.head, "status": status, "output": [], "usage": None}

    def answered(self, assembly: Assembly, usage: Json, memory: ChatMemory | None, *, stored: bool) -> Json:
        """Return the response with its answer."""
        reason = assembly.incomplete
        ended: Json = {
            **self.head,
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "output": list(assembly.output),
            "usage": usage_of(usage),
            "store": stored,
        }
        if reason is None:
            ended["completed_at"] = int(time.time())
        return ended if memory is None else {**ended, "memory": memory.model_dump(mode="json")}

    def failed(self, assembly: Assembly, code: str, message: str) -> Json:
        """Return the response whose answer broke off. It is not kept."""
        assembly.broken()
        error: Json = {"code": code, "message": message}
        return {**self.head, "status": "failed", "error": error, "output": list(assembly.output), "store": False}


def draft_of(asked: Asked, response_id: str) -> Draft:
    """Return the beginning of a response."""
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
    return Draft(response_id, head)


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
