"""Tests the memory through the gateway's public API: sessions are written as a client would send them."""

import hashlib
import time
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from evaluation.memory.records import Ingested, Row, Tokens
from memloop.ports import Recalled
from memloop.wire.memory import Source
from memloop.wire.memory_events import MemoryEvent
from memloop.wire.memory_requests import MemoryAdd, MemorySearch
from memloop_clients.gateway import GatewayClient
from memloop_clients.gateway_memory import ended
from trainer.data.dialogues.dialogue import ASSISTANT, Conversation, Session, Turn
from trainer.data.retry_policy import RetryPolicy

_TURNS_PER_WRITE = 100
_TURN_CHARS = 30_000
_WRITE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Search:
    """Search settings. ``with_raw`` adds raw turns to the extracted memories of the row *ours*."""

    top_k: int = 10
    with_raw: bool = False


class GatewayMemory:
    """Stores each conversation in its own namespace: ``run`` is part of each user's name, so that runs never mix."""

    def __init__(self, url: str, *, api_key: str | None, run: str, search: Search, retries: RetryPolicy) -> None:
        self._client = GatewayClient(url, api_key=api_key)
        self._run = run
        self._search = search
        self._retries = retries

    async def ingest(self, row: Row, talk: Conversation, session: Session) -> Ingested:
        """Write a session and wait until it is settled. Repeating it after a kill writes nothing twice.

        ``error`` reports a write that the gateway gave up. Raises MemloopError when the gateway does not answer.
        """
        began = time.perf_counter()
        user = self._user(row, talk)
        events = [
            await self._add(row, user, f"{user} {session.id} {number}", turns)
            for number, turns in enumerate(_writes(session.turns))
        ]
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
        )

    async def search(self, row: Row, talk: Conversation, query: str) -> tuple[Recalled, ...]:
        """Return the best memories first. Raises MemloopError."""
        request = MemorySearch(
            query=query,
            user_id=self._user(row, talk),
            top_k=self._search.top_k,
            include_raw=row == "ours" and self._search.with_raw,
        )
        found = await self._retries.get(lambda: self._client.search(request))
        return tuple(Recalled(hit.item.id, hit.item.memory, hit.item.valid_from) for hit in found.results)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    def _user(self, row: Row, talk: Conversation) -> str:
        return f"evaluation-{self._run}-{row}-{hashlib.sha256(talk.id.encode()).hexdigest()[:16]}"

    async def _add(self, row: Row, user: str, name: str, turns: Sequence[Turn]) -> MemoryEvent:
        request = MemoryAdd(messages=tuple(map(_message, turns)), user_id=user, infer=row == "ours")
        return await self._ended(await self._retries.get(lambda: self._client.add(request, name=name)))

    async def _flushed(self, user: str, name: str) -> list[MemoryEvent]:
        """Settle all turns that wait for more context, at the end of the session."""
        events = await self._retries.get(lambda: self._client.flush_buffers(user, name=name))
        return [await self._ended(event_id) for event_id in events]

    async def _ended(self, event_id: str) -> MemoryEvent:
        def state() -> Awaitable[MemoryEvent]:
            return self._retries.get(lambda: self._client.event(event_id))

        return await ended(state, what=f"the write {event_id}", wait_s=_WRITE_S)


def _writes(turns: Sequence[Turn]) -> Iterator[Sequence[Turn]]:
    """Split the non-empty turns into writes of the maximum size; overlong texts are cut."""
    said = [
        Turn(turn.id, turn.speaker, turn.text[start : start + _TURN_CHARS], turn.said_at)
        for turn in turns
        for start in range(0, len(turn.text), _TURN_CHARS)
        if turn.text[start : start + _TURN_CHARS].strip()
    ]
    return (said[start : start + _TURNS_PER_WRITE] for start in range(0, len(said), _TURNS_PER_WRITE))


def _message(turn: Turn) -> Source:
    role = ASSISTANT if turn.speaker == ASSISTANT else "user"
    return Source(role=role, content=words_of(turn), message_id=turn.id, timestamp=turn.said_at)


def words_of(turn: Turn) -> str:
    """Format a turn as speaker and text; the same for every row."""
    return f"{turn.speaker}: {turn.text}"
