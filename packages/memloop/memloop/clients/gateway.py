"""Calls Memloop's own gateway: chat, long reads, files, memory, keys."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar, cast

import orjson
from pydantic import BaseModel, ValidationError
from yarl import URL

from memloop.clients.chat_stream import ChatAnswer, ChatChunk, ChatDelta
from memloop.clients.http import Http, HttpClient, retry_after
from memloop.clients.multipart import file_form
from memloop.clients.origin import Timeouts
from memloop.sse import ServerEvent, parse_events
from memloop.wire.base import OpenWire
from memloop.wire.chat import ChatMemory, Json
from memloop.wire.errors import (
    Conflict,
    DependencyError,
    ErrorBody,
    ErrorEnvelope,
    Forbidden,
    InvalidRequest,
    MemloopError,
    NotFound,
    NotSupported,
    PreconditionFailed,
    RateLimited,
    Timeout,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unprocessable,
)
from memloop.wire.files import FileObject
from memloop.wire.keys import KeyCreate, KeyPage, KeyRevoked, NewApiKey
from memloop.wire.long_read import Estimate, LongRead, LongReadRequest, ReadEvent
from memloop.wire.memory import BatchResult, EventPage, ItemPage, MemoryEvent, MemoryItem, SearchResult
from memloop.wire.memory_requests import MemoryAdd, MemoryBatch, MemorySearch

_TIMEOUTS: Final = Timeouts()
_ENDED: Final = frozenset({"completed", "failed", "cancelled", "incomplete"})
_PAUSES_S: Final = (0.05, 2.0)
_DONE: Final = "[DONE]"
_ERRORS: Final[Mapping[int, type[MemloopError]]] = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    422: Unprocessable,
    429: RateLimited,
    500: MemloopError,
    501: NotSupported,
    503: Unavailable,
    504: Timeout,
}
_Model = TypeVar("_Model", bound=BaseModel)
_State = TypeVar("_State", LongRead, MemoryEvent)


class GatewayClient(HttpClient):
    """Has one method per call, and never retries.

    Every method raises the error of ``memloop.wire.errors`` that matches the gateway's status, with the gateway's
    message and field; Unreachable when nothing listens at the URL, Unavailable when the connection is lost, Timeout,
    and DependencyError for an answer of another shape.

    A ``name`` makes a write idempotent: the gateway runs calls with one name and one body once.
    """

    def __init__(self, url: str, *, api_key: str | None = None, timeouts: Timeouts = _TIMEOUTS) -> None:
        """``url`` may end in ``/v1``. Raises ValueError when it is not an http URL."""
        self.url = root_url(url)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        peer = f"gateway {self.url}"
        super().__init__(Http(self.url, peer=peer, error_of=gateway_error, headers=headers, timeouts=timeouts))

    async def models(self) -> tuple[str, ...]:
        """Return the ids of the models that the key may use."""
        return tuple(model.id for model in _parsed(_Models, await self._call("GET", "models")).data)

    async def chat(self, body: Json) -> AsyncGenerator[ChatDelta | ChatAnswer]:
        """Stream a chat completion: its pieces, then the whole. Closing the generator early aborts the reply."""
        streamed: Json = {**body, "stream": True, "stream_options": {"include_usage": True}}
        text: list[str] = []
        memory: ChatMemory | None = None
        async with aclosing(self._stream("POST", "chat/completions", body=streamed)) as events:
            async for event in events:
                if event.data == _DONE:
                    break
                chunk = _parsed(ChatChunk, event.data)
                memory = chunk.memory or memory
                delta = chunk.delta()
                text.append(delta.text)
                yield delta
        yield ChatAnswer("".join(text).strip(), memory)

    async def stream_read(self, request: LongReadRequest) -> AsyncGenerator[ReadEvent]:
        """Have a document read and yield the read's events. Closing the generator early stops the read."""
        async with aclosing(self._stream("POST", "long-read", body={**_body(request), "stream": True})) as events:
            async for event in events:
                yield _parsed(ReadEvent, event.data)

    async def queue_read(self, request: LongReadRequest, *, name: str | None = None) -> str:
        """Queue a read for the workers. Returns its id."""
        body = {**_body(request), "background": True}
        return _parsed(LongRead, await self._call("POST", "long-read", body=body, name=name)).id

    async def read(self, read_id: str) -> LongRead:
        """Return the present state of a queued read."""
        return _parsed(LongRead, await self._call("GET", f"long-read/{_segment(read_id)}"))

    async def read_ended(self, read_id: str, *, wait_s: float) -> LongRead:
        """Wait for the end of a queued read and return it. Raises Timeout after ``wait_s`` seconds."""
        return await ended(lambda: self.read(read_id), what=f"the read {read_id}", wait_s=wait_s)

    async def read_events(self, read_id: str) -> AsyncGenerator[ReadEvent]:
        """Yield all events of a queued read, from the first to its end."""
        path = f"long-read/{_segment(read_id)}"
        async with aclosing(self._stream("GET", path, params={"stream": "true"})) as events:
            async for event in events:
                yield _parsed(ReadEvent, event.data)

    async def cancel_read(self, read_id: str) -> None:
        """Stop a read; has no effect once it has ended."""
        await self._call("POST", f"long-read/{_segment(read_id)}/cancel")

    async def delete_read(self, read_id: str) -> None:
        """Stop a read, and delete it with its document."""
        await self._call("DELETE", f"long-read/{_segment(read_id)}")

    async def estimate(self, request: LongReadRequest) -> Estimate:
        """Return the maximum cost of a read, and the profile that it would use."""
        return _parsed(Estimate, await self._call("POST", "long-read/estimate", body=_body(request)))

    async def upload(self, document: Path) -> FileObject:
        """Upload a document, held in memory meanwhile. Its text is available once it is ``processed``."""
        boundary = secrets.token_hex(16)
        body = file_form(document.name, await asyncio.to_thread(document.read_bytes), boundary)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        async with self._http.open("POST", "v1/files", body=body, headers=headers) as response:
            if response.status >= 400:
                raise await response.error()
            return _parsed(FileObject, await response.read())

    async def file(self, file_id: str) -> FileObject:
        """Return the present state of a file."""
        return _parsed(FileObject, await self._call("GET", f"files/{_segment(file_id)}"))

    async def add(self, request: MemoryAdd, *, name: str | None = None) -> str:
        """Give turns to the memory writer. Returns the id of the write's event."""
        return _parsed(_Accepted, await self._call("POST", "memory/add", body=_body(request), name=name)).event_id

    async def add_batch(self, request: MemoryBatch) -> BatchResult:
        """Store many turns verbatim; each add has an outcome of its own."""
        return _parsed(BatchResult, await self._call("POST", "memory/batch", body=_body(request)))

    async def flush_buffers(self, user_id: str, *, name: str | None = None) -> tuple[str, ...]:
        """Request a decision on buffered turns now. Returns the ids of the writes' events."""
        raw = await self._call("POST", "memory/buffers/flush", body={"user_id": user_id}, name=name)
        return tuple(event.event_id for event in _parsed(_Flushing, raw).events)

    async def search(self, request: MemorySearch) -> SearchResult:
        """Return the best memories for a query."""
        return _parsed(SearchResult, await self._call("POST", "memory/search", body=_body(request)))

    async def memories(self, user_id: str, *, cursor: str | None = None, limit: int = 100) -> ItemPage:
        """Return a page of a user's memories."""
        params = {"user_id": user_id, "limit": str(limit)} | ({"cursor": cursor} if cursor else {})
        return _parsed(ItemPage, await self._call("GET", "memory", params=params))

    async def memory(self, item_id: str) -> MemoryItem:
        """Return one memory."""
        return _parsed(MemoryItem, await self._call("GET", f"memory/{_segment(item_id)}"))

    async def erase(self, user_id: str) -> None:
        """Erase all data of a user."""
        await self._call("DELETE", "memory", params={"user_id": user_id})

    async def events(self, user_id: str, *, limit: int) -> EventPage:
        """Return a user's newest writes."""
        return _parsed(
            EventPage, await self._call("GET", "memory/events", params={"user_id": user_id, "limit": str(limit)})
        )

    async def event(self, event_id: str) -> MemoryEvent:
        """Return the present state of a write."""
        return _parsed(MemoryEvent, await self._call("GET", f"memory/events/{_segment(event_id)}"))

    async def event_ended(self, event_id: str, *, wait_s: float) -> MemoryEvent:
        """Wait for the end of a write and return its event. Raises Timeout after ``wait_s`` seconds."""
        return await ended(lambda: self.event(event_id), what=f"the write {event_id}", wait_s=wait_s)

    async def create_key(self, request: KeyCreate) -> NewApiKey:
        """Create a key. The answer alone holds its secret."""
        return _parsed(NewApiKey, await self._call("POST", "admin/keys", body=_body(request)))

    async def keys(self, tenant: str | None, *, cursor: str | None, limit: int) -> KeyPage:
        """Return a page of a tenant's keys; None means the caller's own tenant."""
        params = {"limit": str(limit)} | ({"tenant": tenant} if tenant else {}) | ({"cursor": cursor} if cursor else {})
        return _parsed(KeyPage, await self._call("GET", "admin/keys", params=params))

    async def rotate_key(self, key_id: str, *, overlap_s: int) -> NewApiKey:
        """Give a key a new secret; the old one works for ``overlap_s`` more seconds."""
        body: Json = {"overlap_s": overlap_s}
        return _parsed(NewApiKey, await self._call("POST", f"admin/keys/{_segment(key_id)}/rotate", body=body))

    async def revoke_key(self, key_id: str) -> KeyRevoked:
        """Revoke a key."""
        return _parsed(KeyRevoked, await self._call("DELETE", f"admin/keys/{_segment(key_id)}"))

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        params: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> bytes:
        headers = {"Idempotency-Key": sha256(name.encode()).hexdigest()} if name else None
        return await self._http.json(method, f"v1/{path}", body=body, params=params, headers=headers)

    async def _stream(
        self, method: str, path: str, *, body: Json | None = None, params: Mapping[str, str] | None = None
    ) -> AsyncGenerator[ServerEvent]:
        raw = None if body is None else orjson.dumps(body)
        async with self._http.open(method, f"v1/{path}", body=raw, params=params) as response:
            if response.status >= 400:
                raise await response.error()
            async with aclosing(parse_events(response.chunks())) as events:
                async for event in events:
                    _raise_if_error(event)
                    yield event


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


def root_url(url: str) -> str:
    """Return the URL above ``/v1``, given with or without it. Raises ValueError unless it is an http URL."""
    parsed = URL(url)
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ValueError(f"{url!r} is not an http URL")
    return url.rstrip("/").removesuffix("/v1")


def gateway_error(status: int, raw: bytes, headers: Mapping[str, str]) -> MemloopError:
    """Return the gateway's error as it raised it; a DependencyError for a status without an error of ours."""
    kind, body = _ERRORS.get(status, DependencyError), _error_body(raw)
    if body is None:
        return kind(f"the gateway answered {status}", retry_after_s=retry_after(headers))
    return kind(body.message, param=body.param, code=body.code, retry_after_s=retry_after(headers))


class _Listed(OpenWire):
    id: str


class _Models(OpenWire):
    data: tuple[_Listed, ...]


class _Accepted(OpenWire):
    event_id: str


class _Flushing(OpenWire):
    events: tuple[_Accepted, ...]


def _error_body(raw: bytes | str) -> ErrorBody | None:
    try:
        return ErrorEnvelope.model_validate_json(raw).error
    except ValidationError:
        return None


def _raise_if_error(event: ServerEvent) -> None:
    if event.type == "error" or event.data.startswith('{"error"'):
        body = _error_body(event.data)
        raise DependencyError(body.message if body else "the gateway ended its stream early")


def _parsed(model: type[_Model], raw: bytes | str) -> _Model:
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise DependencyError(f"the gateway answered no {model.__name__}: is it another version?") from error


def _body(model: BaseModel) -> Json:
    return cast(Json, model.model_dump(mode="json", exclude_none=True))


def _segment(id_: str) -> str:
    """Return the id as one path segment, still unescaped. Raises NotFound when it cannot be one."""
    if "/" in id_ or id_ in {"", ".", ".."}:
        raise NotFound(f"there is nothing with the id {id_!r}")
    return id_
