"""Claude's account export: conversations with their ``chat_messages`` in order, and what Claude keeps of its user.

The latter is one text of Markdown about all conversations and one for each project, without times. Source: exports of
2023 to 2026 as their readers describe them.
"""

import re
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from memloop.wire.chat import Json
from memloop_cli.importing.entries import (
    ROLES,
    Conversation,
    Entry,
    Fact,
    Turn,
    Unreadable,
    content_id,
    fields_of,
    list_of,
    moment_of,
    text_of,
)

MEMBERS = ("conversations", "memories")
INSIDE = ("conversations",)
_ALL, _PROJECTS = "conversations_memory", "project_memories"
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_HEADING: Final = re.compile(r"#+ *(?P<hashed>[^#\s][^\n]*)|\*\*(?P<bold>[^*\n]+)\*\*:?")
_TAG_CHARS: Final = 64


def entries(value: object) -> Iterator[Entry]:
    """Yield the conversation, or the memories. Raises Unreadable."""
    found = fields_of(value)
    if _ALL in found or _PROJECTS in found:
        yield from _memories(found)
    else:
        yield _conversation(found)


def _memories(found: Json) -> Iterator[Fact]:
    yield from _facts(found.get(_ALL), {})
    for project, text in fields_of(found.get(_PROJECTS) or {}).items():
        yield from _facts(text, {"project": project})


def _facts(text: JsonValue, metadata: dict[str, JsonValue]) -> Iterator[Fact]:
    """Yield a memory for each paragraph; the heading above it is its tag."""
    if not isinstance(text, str | None):
        raise Unreadable("a memory that is not a text")
    tags: tuple[str, ...] = ()
    for paragraph in filter(None, map(str.strip, _PARAGRAPHS.split(text or ""))):
        if heading := _HEADING.fullmatch(paragraph):
            tags = ((heading["hashed"] or heading["bold"]).strip()[:_TAG_CHARS],)
        else:
            yield Fact(content_id([*map(str, metadata.values()), paragraph]), paragraph, tags=tags, metadata=metadata)


def _conversation(found: Json) -> Conversation:
    conversation_id = text_of(found, "uuid")
    if not conversation_id:
        raise Unreadable("a conversation without a uuid")
    messages = [fields_of(message) for message in list_of(found.get("chat_messages"), "chat_messages")]
    turns = [turn for number, message in enumerate(messages) if (turn := _turn(message, number))]
    title = text_of(found, "name")
    return Conversation(conversation_id, tuple(turns), title=title, dropped=len(messages) - len(turns))


def _turn(message: Json, number: int) -> Turn | None:
    role, text = ROLES.get(text_of(message, "sender")), _text(message)
    if role is None or not text:
        return None
    return Turn(role, text, text_of(message, "uuid") or str(number), moment_of(message.get("created_at")))


def _text(message: Json) -> str:
    """Return the text blocks, without thinking and tools; older exports have ``text`` alone."""
    content = message.get("content")
    blocks = [fields_of(block) for block in content] if isinstance(content, list) else []
    texts = [text_of(block, "text") for block in blocks if block.get("type") == "text"]
    return "\n\n".join(filter(None, texts)) or ("" if blocks else text_of(message, "text"))
