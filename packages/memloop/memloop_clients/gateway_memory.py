"""How the client of the gateway calls it: addresses, streams, errors as the gateway raised them; and about memories."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from hashlib import sha256
from typing import Final, TypeVar, cast

import orjson
from pydantic import BaseModel
from yarl import URL

from memloop.sse import ServerEvent, parse_events
from memloop.wire.base import OpenWire
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError, Forbidden, MemloopError, NotSupported, Timeout, Unauthenticated
from memloop.wire.feedback import FeedbackRequest
from memloop.wire.long_read import LongRead
from memloop.wire.memory import BatchResult, Erased, MemoryItem, Namespace
from memloop.wire.memory_events import ENDED, MemoryEvent
from memloop.wire.memory_requests import (
    EventList,
    FoundMemories,
    MemoryAdd,
    MemoryBatch,
    MemoryList,
    MemorySearch,
    VersionList,
)
from memloop.wire.quality import QualityAudit
from memloop.wire.store_requests import Imported
from memloop_clients.http import Http, as_raised, own_error, parsed, segment
from memloop_clients.transport import Timeouts

_ENDED: Final = ENDED | {"cancelled", "incomplete"}
_PAUSES_S: Final = (0.05, 2.0)
_State = TypeVar("_State", LongRead, MemoryEvent)
_TIMEOUTS: Final = Timeouts()
_ALSO: Final = {401: Unauthenticated, 403: Forbidden, 500: MemloopError, 501: NotSupported}


class MemoryCalls(Http):
    """Has one method per call about memories."""

    def __init__(
        self, url: str, *, api_key: str | None = None, timeouts: Timeouts = _TIMEOUTS, tls: ssl.SSLContext | None = None
    ) -> None:
        """``url`` may end in ``/v1``. Raises ValueError when it is not an http URL.

        ``tls`` is for an ``https`` URL; None trusts the system's authorities.
        """
        self.url = root_url(url)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        peer, error_of = f"gateway {self.url}", as_raised("gateway", also=_ALSO)
        super().__init__(f"{self.url}/v1", peer=peer, error_of=error_of, headers=headers, timeouts=timeouts, tls=tls)

    async def _stream(
        self, method: str, path: str, *, body: Json | None = None, params: Mapping[str, str] | None = None
    ) -> AsyncGenerator[ServerEvent]:
        raw = None if body is None else orjson.dumps(body)
        async with self.open(method, path, body=raw, params=params) as response:
            await response.check()
            async with aclosing(parse_events(response.chunks())) as events:
                async for event in events:
                    if event.type == "error" or event.data.startswith('{"error"'):
                        fault = own_error(event.data)
                        raise DependencyError(fault.message if fault else "the gateway ended its stream early")
                    yield event

    async def add(self, request: MemoryAdd, *, name: str | None = None) -> str:
        """Give turns to the memory writer. Returns the id of the write's event."""
        return (await self._answer(_Accepted, "POST", "memory/add", body=body_of(request), headers=once(name))).event_id

    async def add_batch(self, request: MemoryBatch) -> BatchResult:
        """Store many turns verbatim; each add has an outcome of its own."""
        return await self._answer(BatchResult, "POST", "memory/batch", body=body_of(request))

    async def flush_buffers(self, user_id: str, *, name: str | None = None) -> tuple[str, ...]:
        """Request a decision on buffered turns now. Returns the ids of the writes' events."""
        body: Json = {"user_id": user_id}
        flushing = await self._answer(_Flushing, "POST", "memory/buffers/flush", body=body, headers=once(name))
        return tuple(event.event_id for event in flushing.events)

    async def search(self, request: MemorySearch) -> FoundMemories:
        """Return the best memories for a query."""
        return await self._answer(FoundMemories, "POST", "memory/search", body=body_of(request))

    async def memories(self, user_id: str, *, cursor: str | None = None, limit: int = 100) -> MemoryList:
        """Return a page of a user's memories."""
        params = {"user_id": user_id, "limit": str(limit)} | ({"cursor": cursor} if cursor else {})
        return await self._answer(MemoryList, "GET", "memory", params=params)

    async def memory(self, item_id: str) -> MemoryItem:
        return await self._answer(MemoryItem, "GET", f"memory/{segment(item_id)}")

    async def feedback(self, item_id: str, request: FeedbackRequest) -> MemoryItem:
        body = cast(Json, request.model_dump(mode="json"))
        return await self._answer(MemoryItem, "POST", f"memory/{segment(item_id)}/feedback", body=body)

    async def audit(self, user_id: str, **asked: str | int | None) -> QualityAudit:
        """Return what in a user's memories is suspect; ``asked`` are further fields of the query."""
        params = {"user_id": user_id} | {name: str(value) for name, value in asked.items() if value is not None}
        return await self._answer(QualityAudit, "GET", "memory/audit", params=params)

    async def erase(self, user_id: str) -> None:
        await self.json("DELETE", "memory", params={"user_id": user_id})

    async def events(self, user_id: str, *, limit: int) -> EventList:
        """Return a user's newest writes."""
        return await self._answer(EventList, "GET", "memory/events", params={"user_id": user_id, "limit": str(limit)})

    async def event(self, event_id: str) -> MemoryEvent:
        """Return the present state of a write."""
        return await self._answer(MemoryEvent, "GET", f"memory/events/{segment(event_id)}")

    async def retry_event(self, event_id: str) -> None:
        """Queue a failed write again. Raises Conflict for any other."""
        await self.json("POST", f"memory/events/{segment(event_id)}/retry")

    async def redecide_event(self, event_id: str) -> None:
        """Queue a new decision on a write that was kept verbatim. Raises Conflict for any other."""
        await self.json("POST", f"memory/events/{segment(event_id)}/redecide")

    async def redecide(self, user_id: str | None) -> tuple[tuple[str, ...], bool]:
        """Queue new decisions on up to 100 kept writes of a user, or of the key's tenant.

        Returns the ids of their events, and whether there may be more.
        """
        body: Json = {} if user_id is None else {"user_id": user_id}
        queued = await self._answer(_Redeciding, "POST", "memory/redecide", body=body)
        return tuple(event.event_id for event in queued.events), queued.has_more

    async def event_ended(self, event_id: str, *, wait_s: float) -> MemoryEvent:
        """Wait for the end of a write and return its event. Raises Timeout after ``wait_s`` seconds."""
        return await ended(lambda: self.event(event_id), what=f"the write {event_id}", wait_s=wait_s)

    async def delete_memory(self, item_id: str) -> None:
        """Delete a memory softly. Raises NotFound."""
        await self.json("DELETE", f"memory/{segment(item_id)}")

    async def history(self, item_id: str) -> VersionList:
        """Return all versions of a memory, oldest first. Raises NotFound."""
        return await self._answer(VersionList, "GET", f"memory/{segment(item_id)}/history")

    async def erase_namespace(self, namespace: Namespace, *, dry_run: bool = False) -> Erased:
        """Erase all data of a namespace in the key's own tenant; return how much it was. ``dry_run`` only counts."""
        params = namespace.model_dump(exclude_none=True, exclude={"tenant"}) | ({"dry_run": "true"} if dry_run else {})
        return await self._answer(Erased, "DELETE", "memory", params=params)

    async def export_memory(self, namespace: Namespace, *, include_raw: bool = False) -> AsyncGenerator[bytes]:
        """Yield an export in blocks of JSONL. Without a last line ``{"exported": N}`` it is not whole."""
        body = orjson.dumps({**namespace.model_dump(exclude_none=True, exclude={"tenant"}), "include_raw": include_raw})
        async with self.open("POST", "memory/export", body=body) as response:
            await response.check()
            async for block in response.chunks():
                yield block

    async def import_lines(self, raw: bytes) -> Imported:
        """Store the lines of an export under their own ids; memories that exist already stay as they are."""
        headers = {"Content-Type": "application/jsonl"}
        async with self.open("POST", "memory/import", body=raw, headers=headers) as response:
            await response.check()
            return parsed(Imported, await response.read(), peer="gateway")


def root_url(url: str) -> str:
    """Return the URL above ``/v1``, given with or without it. Raises ValueError unless it is an http URL."""
    parsed = URL(url)
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ValueError(f"{url!r} is not an http URL")
    return url.rstrip("/").removesuffix("/v1")


def once(name: str | None) -> dict[str, str]:
    """Return the header that makes a write idempotent by its name."""
    return {"Idempotency-Key": sha256(name.encode()).hexdigest()} if name else {}


def body_of(model: BaseModel) -> Json:
    return cast(Json, model.model_dump(mode="json", exclude_none=True))


async def ended(
    state: Callable[[], Awaitable[_State]], *, what: str, wait_s: float, pauses_s: tuple[float, float] = _PAUSES_S
) -> _State:
    """Poll a read or a write until it has ended. Raises Timeout after ``wait_s`` seconds.

    ``pauses_s`` are the first and the longest pause between two polls, in seconds.
    """
    pause_s, longest_s = pauses_s
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while (found := await state()).status not in _ENDED:
        if loop.time() > deadline:
            raise Timeout(f"{what} did not end within {wait_s:g} s")
        await asyncio.sleep(pause_s)
        pause_s = min(1.5 * pause_s, longest_s)
    return found


class _Accepted(OpenWire):
    event_id: str


class _Flushing(OpenWire):
    events: tuple[_Accepted, ...]


class _Redeciding(_Flushing):
    has_more: bool = False
