"""Claude's account export: ``conversations.json``, a list of conversations with ``chat_messages`` in order."""

from collections.abc import Iterator

from memloop.wire.chat import Json
from memloop_cli.importing.entries import ROLES, Conversation, Turn, Unreadable, fields_of, list_of, moment_of, text_of

MEMBER = "conversations"
INSIDE = ("conversations",)


def entries(value: object) -> Iterator[Conversation]:
    """Yield the conversation. Raises Unreadable."""
    found = fields_of(value)
    conversation_id = text_of(found, "uuid")
    if not conversation_id:
        raise Unreadable("a conversation without a uuid")
    messages = [fields_of(message) for message in list_of(found.get("chat_messages"), "chat_messages")]
    turns = [turn for number, message in enumerate(messages) if (turn := _turn(message, number))]
    title = text_of(found, "name")
    yield Conversation(conversation_id, tuple(turns), title=title, dropped=len(messages) - len(turns))


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
