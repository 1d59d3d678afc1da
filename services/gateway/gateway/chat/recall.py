"""Recalls memories for a chat: searches, packs them into a token budget, and inserts them before the last turn.

A store that is down or slow never fails a chat: the answer is made without memories and reports the error.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from gateway.chat.chat import Chat
from gateway.engine import LoopModel
from memloop.loops.rendering import memory_lines
from memloop.ports import Recalled, Splitter
from memloop.profiles import Profile
from memloop.wire.chat import ChatMessage, Json, MemoryOptions
from memloop.wire.errors import DependencyError, MemloopError
from memloop.wire.memory import MAX_TEXT_CHARS, Namespace, StoreSearch
from memloop_service.tracing import span

_INLINE_CHARS = 20_000
"""Texts up to this length are counted on the event loop (about 2 ms), longer ones in a thread."""


@dataclass(frozen=True, slots=True)
class Recall:
    """The result of a recall. ``message`` is None when there is nothing to insert."""

    message: ChatMessage | None = None
    ids: tuple[str, ...] = ()
    tokens: int = 0
    error: str | None = None


async def recall(chat: Chat, model: LoopModel, namespace: Namespace, query: str, options: MemoryOptions) -> Recall:
    """Return the best memories for the query that fit ``options.max_tokens``."""
    if not query.strip():
        return Recall()
    try:
        found = await _search(chat, namespace, query, options)
    except (DependencyError, TimeoutError):
        chat.memory.metrics.recall_failed.inc()
        return Recall(error="The memory store did not respond; this reply was made without memories.")
    except MemloopError as error:
        return Recall(error=f"The memory store rejected the search: {error.message}")
    if sum(len(memory.text) for memory in found) <= _INLINE_CHARS:
        return pack(found, model.profile, model.splitter, max_tokens=options.max_tokens)
    return await asyncio.to_thread(pack, found, model.profile, model.splitter, max_tokens=options.max_tokens)


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
    """Build the message with the best memories, of at most ``max_tokens`` tokens including its own wording.

    A memory that does not fit is skipped; a shorter one after it may still fit. Memories are counted one by one and the
    whole is counted at the end, because token counts of parts do not add up exactly.
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
    """Return the request with the message inserted at index ``before``; the client's messages stay unchanged."""
    messages = fields["messages"]
    if not isinstance(messages, list):
        raise TypeError("messages must be a list")
    put_in: JsonValue = {"role": message.role, "content": message.text()}
    return {**fields, "messages": [*messages[:before], put_in, *messages[before:]]}
