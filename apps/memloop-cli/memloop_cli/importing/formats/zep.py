"""Zep's threads and sessions: lists of messages as its API gives them, and facts.

A message's sender is ``role_type`` in version 2, where ``role`` is a free name, and ``role`` from version 3 on, beside
``name``. Its time is ``reference_time`` in version 4, where ``created_at`` is when Zep received it. Facts that Zep has
found outdated are left out.
"""

from collections.abc import Iterator

from memloop.wire.chat import Json
from memloop_cli.importing.entries import (
    ROLES,
    Conversation,
    Entry,
    Fact,
    Turn,
    Unreadable,
    Whose,
    content_id,
    fields_of,
    list_of,
    moment_of,
    text_of,
    whose_in,
)

MEMBERS = ("",)
INSIDE = ("threads", "sessions")


def entries(value: object) -> Iterator[Entry]:
    """Yield the thread and its facts. Raises Unreadable."""
    found = fields_of(value)
    whose = whose_in(found)
    if "messages" not in found and "facts" not in found:
        raise Unreadable("neither messages nor facts")
    if found.get("messages") is not None:
        yield _conversation(found, whose)
    outdated = 0
    for value in list_of(found.get("facts") or [], "facts"):
        fact: Json = {"fact": value} if isinstance(value, str) else fields_of(value)
        if text_of(fact, "expired_at", "invalid_at"):
            outdated += 1
        else:
            yield _fact(fact, whose)
    if outdated:
        yield Conversation("", (), whose, dropped=outdated)


def _conversation(found: Json, whose: Whose) -> Conversation:
    messages = [fields_of(message) for message in list_of(found["messages"], "messages")]
    turns = [turn for number, message in enumerate(messages) if (turn := _turn(message, number))]
    known = text_of(found, "thread_id", "session_id", "uuid")
    thread_id = known or content_id([text_of(message, "uuid", "content") for message in messages])
    return Conversation(thread_id, tuple(turns), whose, dropped=len(messages) - len(turns))


def _turn(message: Json, number: int) -> Turn | None:
    role, text = ROLES.get(text_of(message, "role_type", "role").lower()), text_of(message, "content")
    if role is None or not text:
        return None
    at = moment_of(message.get("reference_time") or message.get("created_at"))
    return Turn(role, text, text_of(message, "uuid") or str(number), at, _name(message))


def _name(message: Json) -> str:
    """Return the sender's name: in version 2 it is the role, if that is none of the kinds of senders."""
    free = text_of(message, "role") if "role_type" in message else ""
    return text_of(message, "name") or ("" if free.lower() in ROLES else free)


def _fact(found: Json, whose: Whose) -> Fact:
    text = text_of(found, "fact", "content")
    if not text:
        raise Unreadable("a fact without a text")
    at = moment_of(found.get("valid_at")) or moment_of(found.get("created_at"))
    return Fact(text_of(found, "uuid") or content_id([text]), text, whose, at)
