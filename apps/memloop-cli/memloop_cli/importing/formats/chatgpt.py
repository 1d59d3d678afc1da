"""ChatGPT's account export: ``conversations.json``, whose conversations are trees of messages.

A conversation's ``mapping`` holds nodes by id; an edited prompt or a new reply is another child. The thread that the
user saw ends at ``current_node``. Source: exports of 2023 to 2026 as their readers describe them.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import cast

from memloop.wire.chat import Json
from memloop_cli.importing.entries import Conversation, Turn, Unreadable, fields_of, list_of, moment_of, text_of

MEMBERS = ("conversations",)
INSIDE = ("conversations",)
_SHOWN = frozenset(("text", "multimodal_text"))


def entries(value: object) -> Iterator[Conversation]:
    """Yield the conversation as its user saw it last. Raises Unreadable."""
    found = fields_of(value)
    mapping = fields_of(found.get("mapping"))
    began = moment_of(found.get("create_time"))
    messages = _thread(mapping, found.get("current_node"))
    turns: list[Turn] = []
    for message in messages:
        turn = _turn(message, turns[-1].at if turns else began)
        if turn is not None:
            turns.append(turn)
    conversation_id = text_of(found, "conversation_id", "id")
    if not conversation_id:
        raise Unreadable("a conversation without an id")
    title = text_of(found, "title")
    yield Conversation(conversation_id, tuple(turns), title=title, dropped=len(messages) - len(turns))


def _thread(mapping: Json, current: object) -> list[Json]:
    """Return the messages from the root to the current node."""
    node_id = current if isinstance(current, str) and current in mapping else _newest_leaf(mapping)
    found: list[Json] = []
    seen: set[str] = set()
    while isinstance(node_id, str) and node_id in mapping and node_id not in seen:
        seen.add(node_id)
        node = fields_of(mapping[node_id])
        if isinstance(node.get("message"), dict):
            found.append({"id": node_id, **cast(Json, node["message"])})
        node_id = node.get("parent")
    return found[::-1]


def _newest_leaf(mapping: Json) -> str | None:
    """Return the leaf with the latest message: older exports name no current node."""
    leaves = [
        (_created(fields_of(node).get("message")), name)
        for name, node in mapping.items()
        if not fields_of(node).get("children")
    ]
    return max(leaves, default=(0.0, None), key=lambda leaf: leaf[0])[1]


def _created(message: object) -> float:
    created = cast(Json, message).get("create_time") if isinstance(message, dict) else None
    return float(created) if isinstance(created, int | float) else 0.0


def _turn(message: Json, before: datetime | None) -> Turn | None:
    """Return the message as a turn; None for one that the user did not see as text."""
    author = fields_of(message.get("author"))
    role = text_of(author, "role")
    content = fields_of(message.get("content"))
    hidden = message.get("metadata")
    if (
        role not in {"user", "assistant"}
        or content.get("content_type") not in _SHOWN
        or message.get("recipient") not in (None, "all")
        or message.get("channel") == "commentary"
        or message.get("weight") == 0
        or (isinstance(hidden, dict) and hidden.get("is_visually_hidden_from_conversation") is True)
    ):
        return None
    parts = [_text(part) for part in list_of(content.get("parts") or [], "parts")]
    text = "\n".join(part for part in parts if part.strip())
    at = moment_of(message.get("create_time")) or before
    return Turn(role, text, text_of(message, "id"), at, text_of(author, "name")) if text else None


def _text(part: object) -> str:
    """Return the text of a part: a string, or what was said in a voice chat; pictures and sounds have none."""
    if isinstance(part, str):
        return part
    found: Json = cast(Json, part) if isinstance(part, dict) else {}
    return text_of(found, "text") if found.get("content_type") == "audio_transcription" else ""
