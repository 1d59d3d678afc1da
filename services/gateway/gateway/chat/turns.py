"""Extracts a chat's newest turn, which is the query for recall and the input of the memory writer.

The newest turn is the user's messages since the last assistant message, and the assistant's reply. Everything before it
was written by earlier requests. System, developer and tool messages are excluded, and so is the message with recalled
memories, which the client never sends.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import takewhile

from memloop.loops.parsing import without_thoughts
from memloop.wire.chat import SentMessage
from memloop.wire.fields import clean_name, pieces
from memloop.wire.memory import MAX_TEXT_CHARS, Source


def last_user_index(messages: Sequence[SentMessage]) -> int | None:
    """Return the index of the last user message, or None."""
    places = (place for place in reversed(range(len(messages))) if messages[place].role == "user")
    return next(places, None)


def newest_turn(messages: Sequence[SentMessage], reply: str, *, at: datetime) -> tuple[Source, ...]:
    """Return the user's messages since the last assistant message, oldest first, then the reply, without empty texts.

    A text over the size limit of a source is split into several sources.
    """
    since = list(takewhile(lambda message: message.role != "assistant", reversed(messages)))
    asked = (part for message in reversed(since) if message.role == "user" for part in _sources(message, at))
    return (*asked, *_sources(SentMessage(role="assistant", content=reply), at))


def _sources(message: SentMessage, at: datetime) -> Iterator[Source]:
    text, name = message.text(), clean_name(message.name)
    if message.role == "assistant":
        text = without_thoughts(text)
    if text.strip():
        for piece in pieces(text, name=name, most_chars=MAX_TEXT_CHARS):
            yield Source(role=message.role, name=name, content=piece, timestamp=at)
