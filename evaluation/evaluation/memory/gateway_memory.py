"""Tests the memory through the gateway's public API: sessions are written as a client would send them."""

import hashlib
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from evaluation.memory.endpoint import Reply
from evaluation.memory.judging import ANSWER_TOKENS, Asked
from evaluation.memory.records import IN_MEMORY, Ingested, Row, Tokens
from memloop.ports import Recalled
from memloop.wire.chat import Json
from memloop.wire.memory import Source
from memloop.wire.memory_events import MemoryEvent
from memloop.wire.memory_requests import MemoryAdd, MemorySearch
from memloop_clients.gateway import ChatAnswer, GatewayClient
from memloop_clients.gateway_memory import ended
from trainer.data.dialogues.dialogue import ASSISTANT, Conversation, Session, Turn
from trainer.data.retry_policy import RetryPolicy

_WRITE_S = 3600.0
TOP_K: Final = 10
TURN_CHARS: Final = 30_000


@dataclass(frozen=True, slots=True)
class Search:
    """Search settings. ``with_raw`` adds raw turns to the extracted memories of the row *ours*."""

    top_k: int = TOP_K
    with_raw: bool = False


@dataclass(frozen=True, slots=True)
class Writing:
    """How sessions are written: so many turns at once, of at most so many characters.

    ``bare``: a turn's text has no speaker before it. ``both_views``: each of the first two speakers has a memory, in
    which they are the user and the other one the assistant.
    """

    turns: int = 100
    turn_chars: int = TURN_CHARS
    bare: bool = False
    both_views: bool = False


class GatewayMemory:
    """Stores each conversation in its own namespace: ``run`` is part of each user's name, so that runs never mix.

    ``model`` answers in its chats.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None,
        run: str,
        search: Search,
        retries: RetryPolicy,
        model: str = "",
        writing: Writing | None = None,
    ) -> None:
        self._client = GatewayClient(url, api_key=api_key)
        self._run = run
        self._search = search
        self._model = model
        self._writing = writing or Writing()
        self._retries = retries

    async def ingest(self, row: Row, talk: Conversation, session: Session) -> Ingested:
        """Write a session and wait until it is settled. Repeating it after a kill writes nothing twice.

        ``error`` reports a write that the gateway gave up. Raises MemloopError when the gateway does not answer.
        """
        began = time.perf_counter()
        events: list[MemoryEvent] = []
        for view in self._views(talk):
            user = self._user(row, talk, view)
            for number, turns in enumerate(self._writes(session.turns)):
                messages = tuple(self._message(turn, view) for turn in turns)
                events.append(await self._add(row, user, f"{user} {session.id} {number}", messages))
            if row == "ours":
                events += await self._flushed(user, f"{user} {session.id} flush")
        failed = [event.error or "the write failed" for event in events if event.status == "failed"]
        return Ingested(
            row,
            talk.id,
            session.id,
            seconds=round(time.perf_counter() - began, 3),
            tokens=Tokens(
                sum(event.usage.input_tokens for event in events), sum(event.usage.output_tokens for event in events)
            ),
            memories=tuple(written.item.memory for event in events for written in event.memories),
            error="; ".join(failed) or None,
            calls=sum(event.usage.llm_calls for event in events),
        )

    async def search(
        self, row: Row, talk: Conversation, query: str, *, top_k: int | None = None
    ) -> tuple[Recalled, ...]:
        """Return the best memories first, those of each view in turn. Raises MemloopError."""
        views = await self.search_views(row, talk, query, top_k=top_k)
        return tuple(memory for found in views.values() for memory in found)

    async def search_views(
        self, row: Row, talk: Conversation, query: str, *, top_k: int | None = None
    ) -> Mapping[str, tuple[Recalled, ...]]:
        """Return the best memories of each view by its name, which is the conversation's if it has only one."""
        return {
            view or talk.id: await self._found(row, self._user(row, talk, view), query, top_k or self._search.top_k)
            for view in self._views(talk)
        }

    async def chat(self, asked: Asked, shown: Sequence[Recalled]) -> Reply:
        """Ask the question in a chat as an application would, with the memory of its row, or after the turns shown."""
        told = "".join(f"{turn.text}\n" for turn in shown)
        memory: Json = {"mode": "off"}
        if asked.row in IN_MEMORY:
            memory = {"user_id": self._user(asked.row, asked.talk, None), "mode": "read", "top_k": self._search.top_k}
        body: Json = {
            "model": self._model,
            "messages": [{"role": "user", "content": f"{told}{asked.question.text}"}],
            "max_tokens": ANSWER_TOKENS,
            "temperature": 0,
            "seed": asked.seed,
            "memory": memory,
        }

        async def once() -> Reply:
            began = time.perf_counter()
            whole = [piece async for piece in self._client.chat(body) if isinstance(piece, ChatAnswer)]
            usage = whole[-1].usage
            return Reply(whole[-1].text, Tokens(usage.input_tokens, usage.output_tokens), time.perf_counter() - began)

        return await self._retries.get(once)

    async def _found(self, row: Row, user: str, query: str, top_k: int) -> tuple[Recalled, ...]:
        request = MemorySearch(
            query=query,
            user_id=user,
            top_k=top_k,
            include_raw=row == "ours" and self._search.with_raw,
        )
        found = await self._retries.get(lambda: self._client.search(request))
        return tuple(Recalled(hit.item.id, hit.item.memory, hit.item.valid_from) for hit in found.results)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    def _views(self, talk: Conversation) -> Sequence[str | None]:
        """Return the speakers who have a memory each; None for one memory of the whole conversation."""
        return list(dict.fromkeys(turn.speaker for turn in talk.turns))[:2] if self._writing.both_views else (None,)

    def _user(self, row: Row, talk: Conversation, view: str | None) -> str:
        named = talk.id if view is None else f"{talk.id}\0{view}"
        return f"evaluation-{self._run}-{row}-{hashlib.sha256(named.encode()).hexdigest()[:16]}"

    def _writes(self, turns: Sequence[Turn]) -> Iterator[Sequence[Turn]]:
        """Split the non-empty turns into writes of the maximum size; overlong texts are cut."""
        longest, most = self._writing.turn_chars, self._writing.turns
        said = [
            Turn(turn.id, turn.speaker, turn.text[start : start + longest], turn.said_at)
            for turn in turns
            for start in range(0, len(turn.text), longest)
            if turn.text[start : start + longest].strip()
        ]
        return (said[start : start + most] for start in range(0, len(said), most))

    def _message(self, turn: Turn, view: str | None) -> Source:
        assistant = turn.speaker == ASSISTANT if view is None else turn.speaker != view
        content = turn.text if self._writing.bare else words_of(turn)
        role = ASSISTANT if assistant else "user"
        return Source(role=role, content=content, message_id=turn.id, timestamp=turn.said_at)

    async def _add(self, row: Row, user: str, name: str, messages: tuple[Source, ...]) -> MemoryEvent:
        request = MemoryAdd(messages=messages, user_id=user, infer=row == "ours")
        return await self._ended(await self._retries.get(lambda: self._client.add(request, name=name)))

    async def _flushed(self, user: str, name: str) -> list[MemoryEvent]:
        """Settle all turns that wait for more context, at the end of the session."""
        events = await self._retries.get(lambda: self._client.flush_buffers(user, name=name))
        return [await self._ended(event_id) for event_id in events]

    async def _ended(self, event_id: str) -> MemoryEvent:
        def state() -> Awaitable[MemoryEvent]:
            return self._retries.get(lambda: self._client.event(event_id))

        return await ended(state, what=f"the write {event_id}", wait_s=_WRITE_S)


def words_of(turn: Turn) -> str:
    """Format a turn as speaker and text; the same for every row."""
    return f"{turn.speaker}: {turn.text}"
