"""Memory's part in one chat: what was recalled for it, and how its newest turn gets to the memory writer.

When the write is queued, and why no order of events loses it:

* The job is in Redis before the client learns its ``write_event_id``. A kill before that leaves a client without an
  answer's end, which it knows; a kill after that leaves a job that the worker will do.
* Nothing that a reader waits for comes later because of it: a stream has sent its last token by then, and a JSON
  answer waits one Redis round trip, at most ``enqueue_timeout_s``. Deciding what to remember is the worker's work.
* A client that leaves a stream after the model's last token, but before its end, has had its answer: the turn is
  written. One that leaves earlier has not: nothing is written, and it will ask again.
* The write's id is reserved before, and queuing it a second time changes nothing: a client that leaves while the job
  is being queued does not make it two.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.chat.chat import Chat
from gateway.chat.long_context import ReadContext
from gateway.chat.recall import Recall, recall
from gateway.chat.turns import last_user_index, newest_turn
from memloop.wire.chat import NO_OPTIONS, ChatMemory, ChatRequest, LongContext, MemoryOptions, MemoryUsage, SentMessage
from memloop.wire.errors import DependencyError
from memloop.wire.memory import Namespace, Usage

_NOBODY = "No memory was used: the request names no user_id."
_NOT_QUEUED = "The memory write could not be queued: this turn will not be remembered."


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A chat that memory takes part in. ``namespace`` is None when memory was asked for, but for nobody."""

    namespace: Namespace | None
    options: MemoryOptions
    messages: Sequence[SentMessage]
    recalled: Recall
    place: int | None
    """Where the last user message stands; recalled memories go in before it."""
    event_id: str
    """Reserved for the write, so that queuing it a second time changes nothing."""
    read: LongContext | None = None
    """What was read because it did not fit."""
    left_out: str | None = None
    """What the key does not allow."""
    failed: str | None = None
    """What an earlier write of the user left undone."""

    async def answered(self, chat: Chat, reply: str) -> ChatMemory:
        """Queue the write of the newest turn, if there is one; what the answer says about memory."""
        event_id, error = await self._write(chat, reply)
        found = (self.left_out, self.recalled.error, self.failed, error)
        problems = [problem for problem in found if problem is not None]
        spent = self.read.usage if self.read is not None else Usage()
        return ChatMemory(
            retrieved=self.recalled.ids,
            write_event_id=event_id,
            usage=MemoryUsage(**spent.model_dump(), recalled_tokens=self.recalled.tokens),
            long_context=self.read,
            error=" ".join(problems) if problems else None,
        )

    async def _write(self, chat: Chat, reply: str) -> tuple[str | None, str | None]:
        turn = newest_turn(self.messages, reply, at=datetime.now(UTC))
        if self.namespace is None or self.options.mode not in {"readwrite", "write"} or not turn:
            return None, None
        try:
            async with asyncio.timeout(chat.enqueue_timeout_s):
                await chat.memory.queue.enqueue_write(self.namespace, turn, event_id=self.event_id)
                return self.event_id, None
        except (DependencyError, TimeoutError):
            chat.memory.metrics.turns_not_queued.inc()
            return None, _NOT_QUEUED


async def begin_turn(
    chat: Chat,
    asked: ChatRequest,
    namespace: Namespace | None,
    *,
    event_id: str,
    context: ReadContext | None = None,
    left_out: str | None = None,
) -> ChatTurn | None:
    """Recall for a chat; None when memory has no part in it (it is off, or was not asked for and nobody is named).

    ``context``: what was read before, because the chat did not fit. ``left_out``: what the key does not allow.
    """
    options = asked.memory or NO_OPTIONS
    told = context is not None or left_out is not None
    if not told and (options.mode == "off" or (namespace is None and asked.memory is None)):
        return None
    place = last_user_index(asked.messages)
    query = asked.messages[place].text() if place is not None else ""
    recalled, failed = await asyncio.gather(
        _recalled(chat, namespace, context.question if context is not None else query, options),
        _failed(chat, namespace, options),
    )
    return ChatTurn(
        namespace=namespace,
        options=options,
        messages=context.spoken if context is not None else asked.messages,
        recalled=recalled,
        place=place,
        event_id=event_id,
        read=context.told if context is not None else None,
        left_out=left_out,
        failed=failed,
    )


async def _recalled(chat: Chat, namespace: Namespace | None, query: str, options: MemoryOptions) -> Recall:
    if options.mode == "off":
        return Recall()
    if namespace is None:
        return Recall(error=_NOBODY)
    if options.mode == "write":
        return Recall()
    return await recall(chat, namespace, query, options)


async def _failed(chat: Chat, namespace: Namespace | None, options: MemoryOptions) -> str | None:
    if namespace is None or options.mode == "off":
        return None
    failed = await chat.memory.failures.of_user(namespace)
    return failed.told() if failed is not None else None
