"""Recall for a chat: search the caller's memories, pack them into a token budget, put them before the last turn.

A store that is down or slow never fails a chat: the answer is made without memories and says so.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from gateway.chat.chat import Chat
from memloop.loops.rendering import memory_lines
from memloop.ports import Recalled, Splitter
from memloop.profiles import Profile
from memloop.wire.chat import ChatMessage, Json, MemoryOptions
from memloop.wire.errors import DependencyError, MemloopError
from memloop.wire.memory import MAX_TEXT_CHARS, Namespace, StoreSearch
from memloop_service.tracing import span

_INLINE_CHARS = 20_000
"""Up to so many characters are counted on the event loop (about 2 ms); more go to a thread."""


@dataclass(frozen=True, slots=True)
class Recall:
    """What was found for a chat. ``message`` is None when nothing is to be put in."""

    message: ChatMessage | None = None
    ids: tuple[str, ...] = ()
    tokens: int = 0
    error: str | None = None


async def recall(chat: Chat, namespace: Namespace, query: str, options: MemoryOptions) -> Recall:
    """The memories that answer the query, best first, as many as fit ``options.max_tokens``."""
    if not query.strip():
        return Recall()
    try:
        found = await _search(chat, namespace, query, options)
    except (DependencyError, TimeoutError):
        chat.memory.metrics.recall_failed.inc()
        return Recall(error="The memory store did not answer: this reply was made without memories.")
    except MemloopError as error:
        return Recall(error=f"The memory store refused the search: {error.message}")
    served = chat.backend.served
    if sum(len(memory.text) for memory in found) <= _INLINE_CHARS:
        return pack(found, served.profile, served.splitter, max_tokens=options.max_tokens)
    return await asyncio.to_thread(pack, found, served.profile, served.splitter, max_tokens=options.max_tokens)


async def _search(chat: Chat, namespace: Namespace, query: str, options: MemoryOptions) -> tuple[Recalled, ...]:
    started = time.perf_counter()
    search = StoreSearch(namespace=namespace, query=query[-MAX_TEXT_CHARS:], top_k=options.top_k)
    try:
        with span("memory.recall", {"memloop.top_k": options.top_k}) as work:
            async with asyncio.timeout(chat.recall_timeout_s):
                result = await chat.memory.store.search(search)
            work.set_attribute("memloop.memories", len(result.results))
    finally:
        chat.memory.metrics.memory_search_seconds.labels("chat").observe(time.perf_counter() - started)
    return tuple(
        Recalled(id=hit.item.id, text=hit.item.memory, valid_from=hit.item.valid_from) for hit in result.results
    )


def pack(found: Sequence[Recalled], profile: Profile, splitter: Splitter, *, max_tokens: int) -> Recall:
    """The message with the best memories whose tokens, the message's own words included, are at most ``max_tokens``.

    A memory that does not fit is passed over, and a shorter one after it may still fit. Each is counted by itself;
    the whole is counted at the end, because tokens of parts need not add up.
    """
    chosen: list[Recalled] = []
    left = max_tokens - splitter.count(_message(profile, chosen).text())
    for memory in found:
        cost = splitter.count(memory_lines([memory], nothing="")) + 1
        if cost <= left:
            chosen.append(memory)
            left -= cost
    while chosen and splitter.count(_message(profile, chosen).text()) > max_tokens:
        chosen.pop()
    if not chosen:
        return Recall()
    message = _message(profile, chosen)
    return Recall(message, tuple(memory.id for memory in chosen), tokens=splitter.count(message.text()))


def _message(profile: Profile, memories: Sequence[Recalled]) -> ChatMessage:
    return profile.render("recall", memories=memory_lines(memories, nothing=""))[-1]


def with_recalled(fields: Json, message: ChatMessage, *, before: int) -> Json:
    """The request with the message put in before the message at that place; the client's own are left as they are."""
    messages = fields["messages"]
    if not isinstance(messages, list):
        raise TypeError("messages must be a list")
    put_in: JsonValue = {"role": message.role, "content": message.text()}
    return {**fields, "messages": [*messages[:before], put_in, *messages[before:]]}
