"""Which part of a chat is its newest turn: what recall asks with, and what the memory writer gets.

The newest turn is the user's messages since the last assistant message, and the assistant's reply. All that came
before was the newest turn of an earlier request and was written then. System, developer and tool messages are no
part of it, and neither is the message with recalled memories: it never is among the client's messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import takewhile

from memloop.wire.chat import SentMessage
from memloop.wire.memory import MAX_TEXT_CHARS, Source


def last_user_index(messages: Sequence[SentMessage]) -> int | None:
    """Where the last user message stands, or None."""
    places = (place for place in reversed(range(len(messages))) if messages[place].role == "user")
    return next(places, None)


def newest_turn(messages: Sequence[SentMessage], reply: str, *, at: datetime) -> tuple[Source, ...]:
    """The user's messages since the last assistant message, oldest first, then the reply; empty texts left out.

    A text over the limit of a source is cut into several sources, so that nothing of it is lost.
    """
    since = list(takewhile(lambda message: message.role != "assistant", reversed(messages)))
    asked = (message.text() for message in reversed(since) if message.role == "user")
    return (*_sources("user", asked, at), *_sources("assistant", (reply,), at))


def _sources(role: str, texts: Iterable[str], at: datetime) -> Iterator[Source]:
    for text in texts:
        if text.strip():
            yield from (Source(role=role, content=piece, timestamp=at) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + MAX_TEXT_CHARS] for start in range(0, len(text), MAX_TEXT_CHARS))
