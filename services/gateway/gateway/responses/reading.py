"""The chat of a response as memory reads it: the user's own words, without what a coding agent adds to them."""

from typing import Final

from gateway.responses.requests import Asked
from gateway.responses.to_chat import FROM_OUTPUT
from memloop.wire.agent_texts import is_of_agent
from memloop.wire.chat import NO_OPTIONS, ChatRequest, Json
from memloop_service.http import object_in, objects_in

_INSTALLATION: Final = "x-codex-installation-id"


def read_of(asked: Asked, body: Json) -> ChatRequest:
    """Return what the gateway reads of the chat."""
    request, messages = asked.request, objects_in(body["messages"])
    reads = (request.memory or NO_OPTIONS).long_context == "auto"
    return ChatRequest.model_validate(
        {
            "model": request.model,
            "messages": [message if reads else _heard(message) for message in messages],
            "stream": request.stream,
            "metadata": request.metadata,
            "memory": request.memory,
            "safety_identifier": request.safety_identifier,
            "user": _installation(asked) if request.user is None else request.user,
        }
    )


def _heard(message: Json) -> Json:
    """Return the message as memory reads it: one that an agent wrote is not the user's."""
    if message.get("role") != "user":
        return message
    content = message["content"]
    texts = [content] if isinstance(content, str) else [part.get("text") for part in objects_in(content)]
    given = [text for text in texts if isinstance(text, str)]
    own = [text for text in given if not is_of_agent(text) and not text.startswith(FROM_OUTPUT)]
    if len(own) == len(given):
        return message
    return {"role": "user" if own else "system", "content": "\n".join(own)}


def _installation(asked: Asked) -> str | None:
    """Return the user for whom Codex speaks: it names its installation in every request, and no user."""
    given = object_in((asked.request.model_extra or {}).get("client_metadata")).get(_INSTALLATION)
    return f"codex_{given}" if isinstance(given, str) and given else None
