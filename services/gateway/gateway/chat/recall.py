"""Recalls memories for a chat: searches, packs them into a token budget, and puts them into the last user message.

A store that is down or slow never fails a chat: the answer is made without memories and reports the error.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final, TypeVar, cast

from pydantic import JsonValue

from gateway.chat.chat import Chat
from gateway.engine import LoopModel
from gateway.memory import Standing, ranked, read_beside
from memloop.chores import computed, patient_until
from memloop.loops.rendering import memory_line, pending_line, pending_lines, ranked_lines
from memloop.ports import Recalled, Splitter
from memloop.profiles import Profile, RecallPlace
from memloop.wire.chat import ChatMessage, Json, MemoryOptions, SentMessage
from memloop.wire.errors import DependencyError, MemloopError
from memloop.wire.fields import clean_name, said
from memloop.wire.memory import MAX_TEXT_CHARS, MemoryItem, Namespace, PendingTurn, StoreSearch
from memloop.wire.memory_requests import PINNED, UNSORTED, in_category
from memloop.wire.store_requests import RecalledItem, StoreList
from memloop_clients import StoreClient
from memloop_service.tracing import span

_MOST_PENDING = 20
_MOST_FACTS: Final = 200
_MOST_PINNED: Final = 100
_MOST_PAGES: Final = 5
"""Of facts that are read for a profile: the store's filters know no verdicts, so judged ones are read and left out."""
_Item = TypeVar("_Item")
_PROFILE_SHARE = 2
"""A profile gets at most this part of the budget: one half."""
_PENDING_SHARE = 2
"""Pending turns get at most this part of the budget: one half."""
_WINDOW_SHARE = 4
"""The notes get at most this part of a window that is known: a quarter."""
_UNREAD = "The queue of memory writes could not be read; this reply may lack turns that are not memories yet."
_NO_PROFILE = "The memory store did not list the user's profile; this reply was made without it."
_TOO_LONG = "The chat and its notes exceed the model's window; this reply was made without memories."
_DEGRADED = "A model of the memory store did not respond; this reply may lack memories that it would have found."


@dataclass(frozen=True, slots=True)
class Facts:
    """A user's facts, pinned ones first, then the newest; ``total`` counts them all."""

    items: Sequence[MemoryItem]
    total: int


async def facts_of(store: StoreClient, namespace: Namespace, *, category: str | None = None) -> Facts:
    """Read the user's pinned and newest facts, of one category or of all. Raises the store's errors.

    Turns without a decision are none, nor is what a client called wrong or outdated. Facts of the category ``other``
    have it among their tags, or no tag but the pin.
    """
    decided: list[JsonValue] = [{"memory_type": {"ne": "KeptTurn"}}]
    within = [*decided, *([] if category is None else [in_category(category)])]
    pins: list[JsonValue] = [*(decided if category == UNSORTED else within), {"tags": {"in": [PINNED]}}]
    pinned, newest = await asyncio.gather(
        _right(store, namespace, pins, most=_MOST_PINNED), _right(store, namespace, within, most=_MOST_FACTS)
    )
    items = {item.id: item for item in (*pinned.items, *newest.items)}
    facts = (item for item in items.values() if category != UNSORTED or UNSORTED in (*item.tags, category_of(item)))
    return Facts(tuple(islice(facts, _MOST_FACTS)), newest.total)


async def _right(store: StoreClient, namespace: Namespace, filters: Sequence[JsonValue], *, most: int) -> Facts:
    """Return the newest memories that all filters find, without those called wrong or outdated."""
    right, wrong, total = dict[str, MemoryItem](), set[str](), 0
    for skip in range(0, _MOST_PAGES * most, most):
        page = StoreList(scope=namespace, filters={"AND": [*filters]}, skip=skip, limit=most)
        found = await store.listing(page)
        total = found.total
        for item in found.items:
            if item.feedback is None or item.feedback.verdict == "helpful":
                right[item.id] = item
            else:
                wrong.add(item.id)
        if len(right) >= most or total <= skip + most:
            break
    return Facts(tuple(islice(right.values(), most)), total - len(wrong))


def category_of(item: MemoryItem) -> str:
    """Return the memory's first tag, apart from the pin."""
    return next((tag for tag in item.tags if tag != PINNED), UNSORTED)


def fitting(items: Iterable[_Item], cost: Callable[[_Item], int], *, max_tokens: int) -> tuple[list[_Item], int]:
    """Return the items that fit, in order, and their tokens. One that does not is skipped; a later one may fit."""
    shown: list[_Item] = []
    tokens = 0
    for item in items:
        if tokens + (one := cost(item)) <= max_tokens:
            shown.append(item)
            tokens += one
    return shown, tokens


@dataclass(frozen=True, slots=True)
class _Found:
    """The store's part of a recall, the best item first; ``error`` says what is missing."""

    items: tuple[Recalled, ...] = ()
    pending: tuple[PendingTurn, ...] = ()
    pending_complete: bool = True
    degraded: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Recall:
    """The result of a recall. ``message`` holds the notes and is None when there are none.

    ``standing``: how the user's writes stood.
    """

    message: ChatMessage | None = None
    ids: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    tokens: int = 0
    error: str | None = None
    standing: Standing = field(default_factory=Standing)

    def left_out(self) -> "Recall":
        """Return the same without the notes, and why."""
        return Recall(error=" ".join(filter(None, (self.error, _TOO_LONG))), standing=self.standing)


async def recall(
    chat: Chat,
    model: LoopModel,
    namespace: Namespace,
    query: str,
    options: MemoryOptions,
    *,
    messages: Sequence[SentMessage],
) -> Recall:
    """Return the best memories for the query, and pending turns, that fit ``options.max_tokens``.

    Pending turns are the queued ones and the store's buffered ones, without those that ``messages`` hold.
    """
    if not query.strip() and not options.profile:
        return Recall(standing=await chat.memory.pending.of_user(namespace))
    deadline = asyncio.get_running_loop().time() + chat.settings.recall_timeout_s
    searching = partial(_found_beside_profile, chat, model, namespace, query, options, deadline=deadline)
    standing, found = await read_beside(chat.memory.pending, namespace, searching)
    is_complete = standing.complete and found.pending_complete
    if not is_complete:
        chat.memory.metrics.pending_unread.inc()
    errors = (found.error, _DEGRADED if found.degraded else None, None if is_complete else _UNREAD)
    turns = (*standing.pending, *reversed(found.pending))
    texts = [said(clean_name(message.name), message.text()) for message in messages] if turns else []
    present = set(map(str.strip, texts))
    unseen = [turn for turn in turns if turn.said().strip() not in present]
    if unseen:
        present = await _as_kept(chat, namespace, texts[-_MOST_PENDING - len(turns) :])
    pending = ranked([turn for turn in unseen if turn.said().strip() not in present], query)
    window = model.window.tokens
    most = options.max_tokens if window is None else min(options.max_tokens, window // _WINDOW_SHARE)
    shown = pending[:_MOST_PENDING]
    packing = partial(pack, found.items, model.window.profile, model.splitter, max_tokens=most, pending=shown)
    chars = sum(len(memory.text) for memory in found.items) + sum(len(turn.said()) for turn in shown)
    packed = await computed(packing, chars=chars)
    return replace(packed, error=" ".join(filter(None, errors)) or None, standing=standing)


async def _as_kept(chat: Chat, namespace: Namespace, texts: Sequence[str]) -> set[str]:
    """Return what the memory policies keep of texts, as pending turns hold it; nothing where they cannot be read."""
    try:
        redact = (await chat.memory.keeper.redactions(namespace.tenant, [namespace])).of(namespace)
    except DependencyError:
        return set()
    return await computed(lambda: {redact(text).strip() for text in texts}, chars=sum(map(len, texts)))


async def _found_beside_profile(
    chat: Chat, model: LoopModel, namespace: Namespace, query: str, options: MemoryOptions, *, deadline: float
) -> _Found:
    """Return what the store found, after the facts of the user's profile if the chat asks for it."""
    searching = _found(chat, namespace, query, options, deadline=deadline)
    if not options.profile:
        return await searching
    found, facts = await asyncio.gather(searching, _facts(chat, namespace, deadline=deadline))
    if facts is None:
        return replace(found, error=found.error or _NO_PROFILE)

    def cost(item: MemoryItem) -> int:
        return model.splitter.count(item.memory)

    shown, _ = await asyncio.to_thread(fitting, facts.items, cost, max_tokens=options.max_tokens // _PROFILE_SHARE)
    known = {item.id for item in shown}
    return replace(found, items=(*map(_recalled, shown), *(item for item in found.items if item.id not in known)))


async def _facts(chat: Chat, namespace: Namespace, *, deadline: float) -> Facts | None:
    """Return the user's facts, or None if the store does not list them in time."""
    try:
        async with patient_until(deadline):
            return await facts_of(chat.memory.store, namespace)
    except (MemloopError, TimeoutError):
        return None


async def _found(chat: Chat, namespace: Namespace, query: str, options: MemoryOptions, *, deadline: float) -> _Found:
    """Return what the store found, or nothing and why. A query without a word finds nothing."""
    if not query.strip():
        return _Found()
    try:
        started = time.perf_counter()
        search = StoreSearch(
            namespace=namespace, query=query[-MAX_TEXT_CHARS:], top_k=options.top_k, include_buffered=True
        )
        try:
            with span("memory.recall", {"memloop.top_k": options.top_k}) as work:
                async with patient_until(deadline):
                    result = await chat.memory.store.recall(search)
                work.set_attribute("memloop.memories", len(result.results))
        finally:
            chat.memory.metrics.memory_search_seconds.labels("chat").observe(time.perf_counter() - started)
        items = tuple(_recalled(hit.item) for hit in result.results)
        return _Found(items, result.pending, pending_complete=result.pending_complete, degraded=result.degraded)
    except (DependencyError, TimeoutError):
        chat.memory.metrics.recall_failed.inc()
        return _Found(error="The memory store did not respond; this reply was made without memories.")
    except MemloopError as refusal:
        return _Found(error=f"The memory store rejected the search: {refusal.message}")


def _recalled(item: MemoryItem | RecalledItem) -> Recalled:
    return Recalled(id=item.id, text=item.memory, valid_from=item.valid_from, times=item.times)


def pack(
    found: Sequence[Recalled],
    profile: Profile,
    splitter: Splitter,
    *,
    max_tokens: int,
    pending: Sequence[PendingTurn] = (),
) -> Recall:
    """Build the message with the best memories, of at most ``max_tokens`` tokens including its own wording.

    Pending turns take at most half of it. Parts are counted one by one and the whole is counted at the end, because
    token counts of parts do not add up exactly.
    """
    left = max_tokens - splitter.count(_message(profile, (), ()).text())
    said = [(pending_line(turn.role, turn.said(), turn.timestamp), turn.event_id) for turn in pending]
    turns, _ = fitting(said, lambda each: splitter.count(each[0]) + 1, max_tokens=left // _PENDING_SHARE)
    left -= splitter.count(pending_lines([line for line, _ in turns]))
    known = [(memory_line(one.text, one.valid_from, one.times), one.id) for one in found]
    chosen, _ = fitting(known, lambda each: splitter.count(f"1. {each[0]}") + 1, max_tokens=left)
    while chosen or turns:
        message = _message(profile, [line for line, _ in chosen], [line for line, _ in turns])
        tokens = splitter.count(message.text())
        if tokens <= max_tokens:
            events = dict.fromkeys(event_id for _, event_id in turns if event_id)
            return Recall(message, tuple(id_ for _, id_ in chosen), pending=tuple(events), tokens=tokens)
        (chosen or turns).pop()
    return Recall()


def _message(profile: Profile, memories: Sequence[str], pending: Sequence[str]) -> ChatMessage:
    blocks = (ranked_lines(memories), pending_lines(pending))
    return profile.render("recall", memories="\n".join(filter(None, blocks)))[-1]


def with_recalled(fields: Json, notes: str, *, place: int, form: RecallPlace) -> Json:
    """Return the request with the notes in or before the user message at index ``place``.

    Every other message of the client's stays as it is, and so does what that message holds beside the notes. Within
    the message the roles of the chat alternate as before, which many chat templates want.
    """
    messages = cast(list[JsonValue], fields["messages"])
    asked = messages[place]
    if form == "own_message" or not isinstance(asked, dict):
        return {**fields, "messages": [*messages[:place], {"role": "user", "content": notes}, *messages[place:]]}
    content = asked.get("content")
    if isinstance(content, list):
        noted: JsonValue = [{"type": "text", "text": notes}, *content]
    else:
        noted = f"{notes}\n\n{content}" if content else notes
    return {**fields, "messages": [*messages[:place], {**asked, "content": noted}, *messages[place + 1 :]]}
