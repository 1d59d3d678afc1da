"""Handles memory for one chat: recall before the answer, and a queued write of the newest turn after it.

The write is queued so that no crash or disconnect loses it:

* The job is durable before the client receives its ``write_event_id``. A crash before that leaves the client with a
  visibly truncated answer; a crash after it leaves a job for the worker.
* Queuing delays no visible output: a stream has sent its last token by then, and a JSON answer waits one round trip,
  at most ``enqueue_timeout_s``. The worker decides what to remember.
* If a client disconnects from a stream after the model's last token, the turn is written. If it disconnects earlier,
  nothing is written, because the client will retry.
* The write's id is reserved in advance and queuing is idempotent, so a client that disconnects while the job is being
  queued does not cause a second write.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import Final

import orjson

from gateway.chat.chat import Chat, last_user_index
from gateway.chat.oversized import ReadContext
from gateway.chat.recall import Recall, recall
from gateway.engine import LoopModel
from gateway.memory import MemoryJob, Standing
from memloop.chores import computed, patient
from memloop.loops.rendering import without_thoughts
from memloop.wire.chat import (
    NO_OPTIONS,
    ChatMemory,
    ChatRequest,
    Json,
    LongContext,
    MemoryOptions,
    MemoryUsage,
    SentMessage,
)
from memloop.wire.errors import Conflict, DependencyError, EngineError, NotFound, RateLimited, TooLarge
from memloop.wire.fields import clean_name, pieces
from memloop.wire.memory import MAX_TEXT_CHARS, Namespace, Source, Usage
from memloop.wire.memory_events import MemoryEvent

_NO_USER = "Memory is off: the request has no user_id."
_ERASED = "The user's memories were erased during this chat; this turn will not be remembered."
_NOT_QUEUED = "Queuing the memory write failed; this turn will not be remembered."
_FULL = "The queue holds as many of your memory writes as it may; this turn will not be remembered."
_TOO_LARGE = "This turn is longer than a memory write may be; it will not be remembered."
_LOG = logging.getLogger(__name__)
_LEAST_CHARS: Final = 900
"""No window in use is exceeded by less: a token has a character at least."""
_SURELY: Final = 0.8
"""An engine that counts less than this part of our tokens has not read the others: tokenizers differ by less."""
_LATE = "Queuing the memory write took more than {seconds:g} s; this turn may not be remembered."


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A chat that uses memory. ``namespace`` is None when the request asks for memory but has no user id."""

    model: LoopModel
    namespace: Namespace | None
    options: MemoryOptions
    messages: Sequence[SentMessage]
    recalled: Recall
    place: int | None
    """Index of the last user message, which gets the recalled memories."""
    event_id: str
    """Reserved for the write, so that queuing it again has no effect."""
    read: LongContext | None = None
    """Summary of the oversized parts that were read."""
    left_out: str | None = None
    """The memory operations that the key's scopes exclude."""
    failed: str | None = None
    """The error of an earlier failed write of the user."""
    began: int | None = None
    """The newest fencing token at the chat's beginning: an erasure since then forbids the write."""

    async def answered(self, chat: Chat, reply: str, *, usage: Json, waits: bool = True) -> ChatMemory:
        """Queue the write of the newest turn, if any, and return the answer's memory field.

        ``usage`` is the engine's, as far as it has come. With ``waits`` false no client waits, so the write is not
        awaited even with ``sync``.
        """
        event_id, error = await self._write(chat, reply)
        written = await self._written(chat, event_id) if event_id is not None and waits else None
        found = (self.left_out, self.recalled.error, self.failed, error, await self.cut(chat, usage))
        problems = [problem for problem in found if problem is not None]
        spent = self.read.usage if self.read is not None else Usage()
        return ChatMemory(
            retrieved=self.recalled.ids,
            pending=self.recalled.pending,
            write_event_id=event_id,
            write=written,
            usage=MemoryUsage(**spent.model_dump(), recalled_tokens=self.recalled.tokens),
            long_context=self.read,
            error=" ".join(problems) if problems else None,
        )

    async def cut(self, chat: Chat, usage: Json) -> str | None:
        """Return the sentence for a chat of which the engine read only a part; None for any other, as far as known.

        Ollama's OpenAI route and some proxies drop the beginning of a chat that exceeds their window, and answer 200.
        Where the window is known, two counts show it: ours of the client's own messages is beyond the window, and the
        engine's, in ``usage``, is not. No call is made for it, and the answer stays as it is.
        """
        kept = usage.get("prompt_tokens")
        texts = [message.text() for message in self.messages]
        chars = sum(map(len, texts))
        if self.read is not None or not isinstance(kept, int) or kept <= 0 or chars < _LEAST_CHARS:
            return None  # its long parts were read before, or it is short
        model = self.model
        await model.look()
        window = model.window.tokens
        if window is None or not kept <= window < chars:
            return None
        tokens = await computed(partial(model.splitter.count, "\n".join(texts)), chars=chars)
        if tokens <= window or kept >= _SURELY * tokens:
            return None
        chat.backend.metrics.chats_cut.labels(model.label).inc()
        _LOG.warning(
            "the model %s read %d of about %d tokens of a chat: its window is %d", model.id, kept, tokens, window
        )
        return (
            f"The engine read only {kept} of about {tokens} tokens of this chat: its window has {window}."
            " Send less, enlarge the window, or set memory.long_context to auto."
        )

    async def _written(self, chat: Chat, event_id: str) -> MemoryEvent | None:
        """Return the write's event once it has ended, at the latest after ``sync_wait_s``; None without ``sync``.

        A key that may not read memories, or a mode that does not, gets the status alone.
        """
        if not self.options.sync or self.namespace is None:
            return None
        memory = chat.memory
        try:
            event = await memory.queue.events.wait(self.namespace.tenant, event_id, timeout_s=memory.sync_wait_s)
        except (DependencyError, NotFound):
            return None
        shown = self.options.mode == "readwrite"
        return event if shown else event.model_copy(update={"memories": (), "decisions": ()})

    async def _write(self, chat: Chat, reply: str) -> tuple[str | None, str | None]:
        turn = newest_turn(self.messages, reply, at=datetime.now(UTC))
        if self.namespace is None or self.options.mode not in {"readwrite", "write"} or not turn:
            return None, None
        try:
            async with patient(chat.settings.enqueue_timeout_s):
                job = MemoryJob(event_id=self.event_id, namespace=self.namespace, turns=turn, settles=self.options.sync)
                await chat.memory.queue.enqueue(job, began=self.began)
                return self.event_id, None
        except Conflict:
            return None, _ERASED
        except (DependencyError, RateLimited, TooLarge, TimeoutError) as error:
            chat.memory.metrics.turns_not_queued.inc()
            match error:
                case TimeoutError():  # it may be queued nevertheless: the command was sent
                    return None, _LATE.format(seconds=chat.settings.enqueue_timeout_s)
                case RateLimited():
                    return None, _FULL
                case _:
                    return None, _TOO_LARGE if isinstance(error, TooLarge) else _NOT_QUEUED


async def begin_turn(
    chat: Chat,
    model: LoopModel,
    asked: ChatRequest,
    namespace: Namespace | None,
    *,
    event_id: str,
    context: ReadContext | None = None,
    left_out: str | None = None,
    began: int | None = None,
) -> ChatTurn:
    """Recall memories for a chat.

    ``context`` holds oversized parts that were read before, since ``began``; ``left_out`` the operations that the key
    excludes.
    """
    options = asked.memory or NO_OPTIONS
    place = last_user_index(asked.messages)
    query = asked.messages[place].text() if place is not None else ""
    question = context.question if context is not None else query
    recalled = Recall()
    if options.mode != "off" and namespace is None:
        recalled = Recall(error=_NO_USER)
    elif options.mode == "write":
        recalled = Recall(standing=await standing_of(chat, namespace, options))
    elif options.mode != "off" and namespace is not None:
        recalled = await recall(chat, model, namespace, question, options, messages=asked.messages)
    standing = recalled.standing
    return ChatTurn(
        model=model,
        namespace=namespace,
        options=options,
        messages=context.spoken if context is not None else asked.messages,
        recalled=recalled,
        place=place,
        event_id=event_id,
        read=context.summary if context is not None else None,
        left_out=left_out,
        failed=standing.failed.summary() if standing.failed is not None else None,
        began=standing.newest_token if began is None else began,
    )


async def standing_of(chat: Chat, namespace: Namespace | None, options: MemoryOptions) -> Standing:
    """Return how the user's writes stand."""
    if namespace is None or options.mode == "off":
        return Standing()
    return await chat.memory.pending.of_user(namespace)


def newest_turn(messages: Sequence[SentMessage], reply: str, *, at: datetime) -> tuple[Source, ...]:
    """Return the user's messages since the last assistant message, oldest first, then the reply, without empty texts.

    They are the input of the memory writer; everything before them was written by earlier requests. Messages in other
    roles are excluded, and so is the one with recalled memories, which the client never sends. A last message of the
    assistant is the beginning of the reply. A text over the size limit of a source is split into several sources.
    """
    if messages and messages[-1].role == "assistant" and (begun := messages[-1].text()).strip():
        messages, reply = messages[:-1], begun + reply
    since = list(takewhile(lambda message: message.role != "assistant", reversed(messages)))
    asked = [message for message in reversed(since) if message.role == "user"]
    said = [(message, message.text()) for message in asked]
    said.append((SentMessage(role="assistant", content=reply), without_thoughts(reply)))
    return tuple(
        Source(role=message.role, name=name, content=piece, timestamp=at)
        for message, text in said
        if text.strip()
        for name in (clean_name(message.name),)
        for piece in pieces(text, name=name, most_chars=MAX_TEXT_CHARS)
    )


def with_memory(answer: Json, memory: ChatMemory) -> Json:
    """Return the engine's object with memory's part."""
    return {**answer, "memory": memory.model_dump()}


def written(answer: Mapping[str, object]) -> bytes:
    """Encode an answer as JSON. Raises EngineError when it is nested too deeply."""
    try:
        return orjson.dumps(answer)
    except orjson.JSONEncodeError as error:
        raise EngineError("the engine's answer is nested too deeply") from error
