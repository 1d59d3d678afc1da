"""Plain JSON lines of chats: ``{"messages": [...]}``, a list of messages, or a message a line."""

from collections.abc import Iterator, Sequence
from typing import cast

from memloop.wire.chat import Json
from memloop_cli.importing.entries import (
    ROLES,
    Conversation,
    Turn,
    Unreadable,
    content_id,
    fields_of,
    list_of,
    moment_of,
    text_of,
    whose_in,
)

MEMBERS = ("",)
INSIDE = ("conversations",)
_TIMES = ("timestamp", "created_at", "create_time", "time")


def entries(value: object) -> Iterator[Conversation]:
    """Yield the conversation. Raises Unreadable."""
    found: Json = {} if isinstance(value, list) else fields_of(value)
    single = "messages" not in found and "role" in found
    several: object = cast("object", value) if isinstance(value, list) else found.get("messages")
    listed = [found] if single else list_of(several, "messages")
    messages = [fields_of(message) for message in listed]
    turns = [turn for number, message in enumerate(messages) if (turn := _turn(message, number, found))]
    if not messages:
        raise Unreadable("a chat without messages")
    known = text_of(found, "id", "conversation_id", "thread_id")
    conversation_id = known or content_id([f"{turn.role} {turn.at} {turn.content}" for turn in turns])
    title = text_of(found, "title")
    yield Conversation(conversation_id, tuple(turns), whose_in(found), title, len(messages) - len(turns))


def _turn(message: Json, number: int, conversation: Json) -> Turn | None:
    role, text = ROLES.get(text_of(message, "role", "sender").lower()), _text(message.get("content"))
    if role is None or not text.strip():
        return None
    at = moment_of(_first(message)) or moment_of(_first(conversation))
    return Turn(role, text, text_of(message, "id", "message_id") or str(number), at, text_of(message, "name"))


def _first(fields: Json) -> object:
    return next((fields[name] for name in _TIMES if fields.get(name) is not None), None)


def _text(content: object) -> str:
    """Return a content's text: a string, or OpenAI's list of parts."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    parts: Sequence[Json] = [fields_of(part) for part in list_of(content, "content")]
    return "\n".join(filter(None, (text_of(part, "text") for part in parts)))
