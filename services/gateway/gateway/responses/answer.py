"""The response object: what was asked, as the public API repeats it, and the engine's answer."""

import time
from dataclasses import dataclass

from pydantic import JsonValue

from gateway.responses.assembly import Assembly
from gateway.responses.requests import PLAIN_TEXT, Asked
from gateway.responses.tools import shown_tools
from memloop.wire.chat import ChatMemory, Json
from memloop_service.http import object_in


@dataclass(frozen=True, slots=True)
class Draft:
    """A response that is being made: its id, and every field that the answer does not change."""

    id: str
    head: Json

    def item_id(self, prefix: str, place: int) -> str:
        """Name an item of the output."""
        return f"{prefix}_{self.id.removeprefix('resp_')}{place:04x}"

    def queued(self) -> Json:
        """Return the response that waits for a worker."""
        return {**self.head, "status": "queued", "output": [], "usage": None}

    def in_progress(self) -> Json:
        """Return the response before its answer."""
        return {**self.head, "status": "in_progress", "output": [], "usage": None}

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
    repeated: Json = {
        name: given.get(name)
        for name in ("temperature", "top_p", "service_tier", "prompt_cache_key", "prompt_cache_retention")
    }
    head: Json = {
        "id": response_id,
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": request.background is True,
        "conversation": None if request.conversation_id is None else {"id": request.conversation_id},
        "error": None,
        "incomplete_details": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": request.max_tool_calls,
        "metadata": dict(request.metadata or {}),
        "model": request.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": request.previous_response_id,
        "reasoning": {"effort": asked.reasoning.effort, "summary": asked.reasoning.summary},
        "safety_identifier": request.safety_identifier,
        "store": request.stores,
        "text": _text(asked),
        "tool_choice": request.tool_choice or "auto",
        "tools": [*shown_tools(asked.tools)],
        "top_logprobs": request.top_logprobs or 0,
        "truncation": "disabled",
        "usage": None,
        "user": request.user,
    }
    return Draft(response_id, head | repeated)


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


def _text(asked: Asked) -> Json:
    if asked.text is PLAIN_TEXT:
        return {"format": {"type": "text"}}
    text: Json = {"format": asked.text.format.model_dump(exclude_none=True, by_alias=True)}
    return text if asked.text.verbosity is None else {**text, "verbosity": asked.text.verbosity}
