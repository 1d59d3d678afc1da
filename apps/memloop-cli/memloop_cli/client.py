"""The gateway's HTTP API as the command line uses it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar, cast
from urllib.parse import quote

import orjson
from pydantic import BaseModel, ValidationError
from yarl import URL

from memloop.clients import Timeouts
from memloop.clients.http import Http, HttpClient
from memloop.wire.chat import ChatMemory, ChatMessage, Json
from memloop.wire.errors import ErrorBody, ErrorEnvelope, MemloopError, Unavailable
from memloop.wire.keys import KeyCreate, KeyPage, KeyRevoked, NewApiKey
from memloop.wire.long_read import LongReadRequest, ReadEvent
from memloop.wire.memory import EventPage, ItemPage, MemoryAdd, MemoryEvent, MemoryItem, MemorySearch, SearchResult
from memloop_cli.errors import CliError
from memloop_cli.sse import ServerEvent, read_events

_TIMEOUTS = Timeouts(connect_s=5.0, read_s=600.0, total_s=600.0)
_POLL_S = 0.1
_ENDED = ("completed", "failed")
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A whole reply, and what memory did for it (None when the gateway said nothing of it)."""

    text: str
    memory: ChatMemory | None


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of a reply; ``reasoning`` is what the model thinks before it."""

    text: str = ""
    reasoning: str = ""


class GatewayClient(HttpClient):
    """Every method raises CliError when the gateway cannot be reached, refuses or fails."""

    def __init__(self, base_url: str, *, api_key: str | None = None) -> None:
        url = URL(base_url)
        if url.scheme not in {"http", "https"} or not url.host:
            raise CliError(f"{base_url!r} is no http URL (MEMLOOP_URL)", code=2)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        super().__init__(Http(base_url, peer="gateway", error_of=_refusal, headers=headers, timeouts=_TIMEOUTS))
        self._where = base_url

    async def model(self) -> str:
        """The id of the first model that is served."""
        models = cast(Json, orjson.loads(await self._call("GET", "v1/models"))).get("data")
        first = models[0] if isinstance(models, list) and models else None
        name = first.get("id") if isinstance(first, dict) else None
        if not isinstance(name, str):
            raise CliError("the gateway lists no model")
        return name

    async def read(self, request: LongReadRequest) -> AsyncGenerator[ReadEvent, None]:
        """The events of a long read. Leaving early stops it."""
        body = cast(Json, request.model_copy(update={"stream": True}).model_dump(mode="json", exclude_none=True))
        async with aclosing(self._stream("v1/long-read", body)) as events:
            async for event in events:
                yield _parsed(ReadEvent, event.data)

    async def chat(
        self, messages: Sequence[ChatMessage], *, model: str, memory: Json, more: Json
    ) -> AsyncGenerator[ChatDelta | ChatAnswer, None]:
        """The pieces of a reply, and at the end the whole. ``more`` are further fields of the request."""
        spoken: list[str] = []
        told: ChatMemory | None = None
        body: Json = {
            "model": model,
            "messages": [cast(Json, message.model_dump(exclude_none=True)) for message in messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "memory": memory,
            **more,
        }
        async with aclosing(self._stream("v1/chat/completions", body)) as events:
            async for event in events:
                if event.data == b"[DONE]":
                    break
                chunk = cast(Json, orjson.loads(event.data))
                if isinstance(chunk.get("memory"), dict):
                    told = ChatMemory.model_validate(chunk["memory"])
                delta = _delta(chunk)
                spoken.append(delta.text)
                yield delta
        yield ChatAnswer("".join(spoken).strip(), told)

    async def add(self, request: MemoryAdd) -> MemoryEvent:
        """A write, waited for."""
        answer = cast(Json, orjson.loads(await self._call("POST", "v1/memory/add", body=_body(request))))
        return await self.event_ended(str(answer["event_id"]))

    async def search(self, request: MemorySearch) -> SearchResult:
        """The best memories for a query."""
        return _parsed(SearchResult, await self._call("POST", "v1/memory/search", body=_body(request)))

    async def memories(self, user_id: str, *, cursor: str | None, limit: int) -> ItemPage:
        """A page of a user's memories."""
        params = {"user_id": user_id, "limit": str(limit)} | ({"cursor": cursor} if cursor else {})
        return _parsed(ItemPage, await self._call("GET", "v1/memory", params=params))

    async def memory(self, item_id: str) -> MemoryItem:
        """One memory."""
        return _parsed(MemoryItem, await self._call("GET", f"v1/memory/{item_id}"))

    async def events(self, user_id: str, *, limit: int) -> EventPage:
        """A user's newest writes."""
        params = {"user_id": user_id, "limit": str(limit)}
        return _parsed(EventPage, await self._call("GET", "v1/memory/events", params=params))

    async def event_ended(self, event_id: str, *, timeout_s: float = 60.0) -> MemoryEvent:
        """A write's event, once it is decided; as it stands after ``timeout_s`` seconds."""
        deadline = time.monotonic() + timeout_s
        while True:
            event = _parsed(MemoryEvent, await self._call("GET", f"v1/memory/events/{event_id}"))
            if event.status in _ENDED or time.monotonic() > deadline:
                return event
            await asyncio.sleep(_POLL_S)

    async def create_key(self, request: KeyCreate) -> NewApiKey:
        """A new key, with its secret."""
        return _parsed(NewApiKey, await self._call("POST", "v1/admin/keys", body=_body(request)))

    async def keys(self, tenant: str | None, *, cursor: str | None, limit: int) -> KeyPage:
        """A page of a tenant's keys; of the caller's own when none is named."""
        params = {"limit": str(limit)} | ({"tenant": tenant} if tenant else {}) | ({"cursor": cursor} if cursor else {})
        return _parsed(KeyPage, await self._call("GET", "v1/admin/keys", params=params))

    async def rotate_key(self, key_id: str, *, overlap_s: int) -> NewApiKey:
        """The key with a new secret."""
        path = f"v1/admin/keys/{quote(key_id, safe='')}/rotate"
        return _parsed(NewApiKey, await self._call("POST", path, body={"overlap_s": overlap_s}))

    async def revoke_key(self, key_id: str) -> KeyRevoked:
        """The key, ended."""
        return _parsed(KeyRevoked, await self._call("DELETE", f"v1/admin/keys/{quote(key_id, safe='')}"))

    async def _call(
        self, method: str, path: str, *, body: Json | None = None, params: Mapping[str, str] | None = None
    ) -> bytes:
        try:
            return await self._http.json(method, path, body=body, params=params)
        except MemloopError as error:
            raise self._said(error) from error

    async def _stream(self, path: str, body: Json) -> AsyncGenerator[ServerEvent, None]:
        try:
            async with self._http.open("POST", path, body=orjson.dumps(body)) as response:
                if response.status >= 400:
                    raise await response.error()
                async for event in read_events(response.chunks()):
                    _raise_if_error(event)
                    yield event
        except MemloopError as error:
            raise self._said(error) from error

    def _said(self, error: MemloopError) -> CliError:
        if isinstance(error, GatewayRefusal):
            return CliError(error.message, code=2 if 400 <= error.status_code < 500 else 1)
        if isinstance(error, Unavailable):
            return CliError(f"no gateway answers at {self._where}: start one with `memloop up`, or set MEMLOOP_URL")
        return CliError(error.message)


class GatewayRefusal(MemloopError):
    """The gateway answered with an error of its own."""

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.status_code = status_code


def _refusal(status: int, raw: bytes, headers: Mapping[str, str]) -> MemloopError:
    del headers
    body = _error_body(raw)
    if body is None:
        return GatewayRefusal(f"the gateway answered {status}", status)
    where = f" ({body.param})" if body.param else ""
    return GatewayRefusal(f"{body.message}{where}", status)


def _error_body(raw: bytes) -> ErrorBody | None:
    try:
        return ErrorEnvelope.model_validate_json(raw).error
    except ValidationError:
        return None


def _raise_if_error(event: ServerEvent) -> None:
    if event.type == "error" or event.data.startswith(b'{"error"'):
        body = _error_body(event.data)
        raise GatewayRefusal(body.message if body else "the stream broke off", 502)


def _delta(chunk: Json) -> ChatDelta:
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(delta, dict):
        return ChatDelta()
    text, thought = delta.get("content"), delta.get("reasoning") or delta.get("reasoning_content")
    return ChatDelta(text if isinstance(text, str) else "", thought if isinstance(thought, str) else "")


def _parsed(model: type[_Model], raw: bytes) -> _Model:
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise CliError(f"the gateway answered no {model.__name__}: is it another version?") from error


def _body(model: BaseModel) -> Json:
    return cast(Json, model.model_dump(mode="json", exclude_none=True))
