"""The memory under test, by the gateway's public API: sessions go in as a client would send them."""

import asyncio
import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import JsonValue

from evaluation.memory.records import Ingested, Row, Tokens
from memloop.clients.engine import auth_headers, engine_error
from memloop.clients.http import Http, Timeouts
from memloop.ports import Recalled
from memloop.wire.base import OpenWire
from memloop.wire.errors import Timeout
from memloop.wire.memory import MemoryEvent, SearchResult
from trainer.data.dialogues.dialogue import ASSISTANT, Conversation, Session, Turn
from trainer.data.retry_policy import RetryPolicy

_TURNS_PER_WRITE = 100
_TURN_CHARS = 30_000
_ENDED = ("completed", "failed")
_POLL_S = (0.02, 1.0)
_WRITE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Search:
    """How memories are looked up. ``with_raw``: raw turns beside the extracted memories of the row *ours*."""

    top_k: int = 10
    with_raw: bool = False


class GatewayMemory:
    """Conversations in namespaces of their own: ``run`` is in each user's name, so that runs never meet."""

    def __init__(self, url: str, *, api_key: str | None, run: str, search: Search, retries: RetryPolicy) -> None:
        headers = auth_headers(url, api_key)
        self._http = Http(url, peer="gateway", error_of=engine_error, headers=headers, timeouts=Timeouts())
        self._run = run
        self._search = search
        self._retries = retries

    async def ingest(self, row: Row, talk: Conversation, session: Session) -> Ingested:
        """Write a session and wait until all of it is settled. Repeating it after a kill writes nothing twice.

        A write that the gateway gave up is told in ``error``. Raises MemloopError when the gateway does not answer.
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
        """The best memories first. Raises MemloopError."""
        body: dict[str, JsonValue] = {"query": query, "user_id": self._user(row, talk), "top_k": self._search.top_k}
        body["include_raw"] = row == "ours" and self._search.with_raw
        found = SearchResult.model_validate_json(await self._call("POST", "v1/memory/search", body))
        return tuple(Recalled(hit.item.id, hit.item.memory, hit.item.valid_from) for hit in found.results)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    def _user(self, row: Row, talk: Conversation) -> str:
        return f"evaluation-{self._run}-{row}-{hashlib.sha256(talk.id.encode()).hexdigest()[:16]}"

    async def _add(self, row: Row, user: str, name: str, turns: Sequence[Turn]) -> MemoryEvent:
        messages: list[JsonValue] = [_message(turn) for turn in turns]
        body: dict[str, JsonValue] = {"messages": messages, "user_id": user, "infer": row == "ours"}
        return await self._ended(_event_id(await self._call("POST", "v1/memory/add", body, name=name)))

    async def _flushed(self, user: str, name: str) -> list[MemoryEvent]:
        """Have all that waits for more context settled: the session is over."""
        raw = await self._call("POST", "v1/memory/buffers/flush", {"user_id": user}, name=name)
        return [await self._ended(event.event_id) for event in _Flushing.model_validate_json(raw).events]

    async def _ended(self, event_id: str) -> MemoryEvent:
        pause_s, longest_s = _POLL_S
        deadline = time.monotonic() + _WRITE_S
        while time.monotonic() < deadline:
            event = MemoryEvent.model_validate_json(await self._call("GET", f"v1/memory/events/{event_id}"))
            if event.status in _ENDED:
                return event
            await asyncio.sleep(pause_s)
            pause_s = min(1.5 * pause_s, longest_s)
        raise Timeout(f"the write {event_id} did not end within {_WRITE_S:.0f} s")

    async def _call(self, method: str, path: str, body: JsonValue = None, *, name: str | None = None) -> bytes:
        key = {"Idempotency-Key": hashlib.sha256(name.encode()).hexdigest()} if name else None
        return await self._retries.get(lambda: self._http.json(method, path, body=body, headers=key))


class _Accepted(OpenWire):
    event_id: str


class _Flushing(OpenWire):
    events: tuple[_Accepted, ...]


def _event_id(raw: bytes) -> str:
    return _Accepted.model_validate_json(raw).event_id


def _writes(turns: Sequence[Turn]) -> Iterator[Sequence[Turn]]:
    """Turns with words, as many as one write takes; what is too long for one text is cut."""
    said = [
        Turn(turn.id, turn.speaker, turn.text[start : start + _TURN_CHARS], turn.said_at)
        for turn in turns
        for start in range(0, len(turn.text), _TURN_CHARS)
        if turn.text[start : start + _TURN_CHARS].strip()
    ]
    return (said[start : start + _TURNS_PER_WRITE] for start in range(0, len(said), _TURNS_PER_WRITE))


def _message(turn: Turn) -> JsonValue:
    return {
        "role": ASSISTANT if turn.speaker == ASSISTANT else "user",
        "content": words_of(turn),
        "message_id": turn.id,
        "timestamp": turn.said_at.isoformat(),
    }


def words_of(turn: Turn) -> str:
    """What was said and by whom; the same for every row."""
    return f"{turn.speaker}: {turn.text}"
