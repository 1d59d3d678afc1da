"""A running gateway, asked as any client asks it: long reads in the background, memory writes that are waited for."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, JsonValue, ValidationError

from memloop.clients import Timeouts
from memloop.clients.http import Http, HttpClient, retry_after
from memloop.ports import Recalled
from memloop.wire.base import OpenWire
from memloop.wire.errors import DependencyError, EngineError, ErrorEnvelope, MemloopError, Timeout, Unavailable
from memloop.wire.long_read import Document, LongRead, LongReadRequest, Strategy
from memloop.wire.memory import BatchedAdd, BatchResult, MemoryAdd, MemoryBatch, MemoryEvent, Source
from trainer.data.json_rows import DataError
from trainer.data.retry_policy import RetryPolicy
from trainer.rollout.tasks import DecideTask, ReadTask

_ENDED: Final = frozenset({"completed", "failed", "cancelled", "incomplete"})
_POLL_S: Final = (0.05, 2.0)
_GONE: Final = 404
_PROBE: Final = "What is written here?"
T = TypeVar("T", bound=BaseModel)
_State = TypeVar("_State", LongRead, MemoryEvent)


class _Model(OpenWire):
    id: str


class _Models(OpenWire):
    data: tuple[_Model, ...]


class _Estimate(OpenWire):
    profile: str


class _Accepted(OpenWire):
    event_id: str


class Gateway(HttpClient):
    """Raises EngineError when the gateway refuses (``engine_status`` is its own), Unavailable or Timeout when it is not
    there. A read or a write has ``wait_s`` seconds; a call that was lost is repeated, and does what it does once.
    """

    def __init__(self, url: str, *, api_key: str | None, retries: RetryPolicy, wait_s: float) -> None:
        """Raises DataError when the URL is none."""
        self.url = base_url(url)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        peer = f"gateway {self.url}"
        refusal = partial(_refusal, peer)
        super().__init__(Http(self.url, peer=peer, error_of=refusal, headers=headers, timeouts=Timeouts()))
        self._retries = retries
        self._wait_s = wait_s

    async def models(self) -> tuple[str, ...]:
        """The ids of the models that it can ask."""
        return tuple(model.id for model in _parsed(_Models, await self._call("GET", "v1/models")).data)

    async def profile_ref(self, model: str) -> str:
        """The reference of the prompts that it reads with."""
        asked = LongReadRequest(model=model, question=_PROBE, document=Document(text=_PROBE))
        return _parsed(_Estimate, await self._call("POST", "v1/long-read/estimate", _body(asked))).profile

    async def begin_read(self, task: ReadTask, *, model: str, strategy: Strategy, name: str) -> str:
        """The id of a read that is queued behind production's. ``name`` tells it from all others."""
        asked = LongReadRequest(
            model=model,
            question=task.question,
            document=Document(text=task.context),
            strategy=strategy,
            background=True,
            service_tier="flex",
        )
        return _parsed(LongRead, await self._call("POST", "v1/long-read", _body(asked), name=name)).id

    async def read_ended(self, read_id: str) -> LongRead:
        """The read as it ended."""

        async def state() -> LongRead:
            return _parsed(LongRead, await self._call("GET", f"v1/long-read/{read_id}"))

        return await self._ended(state, f"the read {read_id}")

    async def forget_read(self, read_id: str) -> None:
        """Delete the read and its document, if they are still there; one that runs stops."""
        try:
            await self._call("DELETE", f"v1/long-read/{read_id}")
        except EngineError as error:
            if error.engine_status != _GONE:
                raise

    async def remember(self, memories: Sequence[Recalled], *, user_id: str) -> None:
        """Keep the texts as the user's memories, each as of its own time."""
        adds = tuple(
            BatchedAdd(messages=(Source(role="user", content=each.text, timestamp=each.valid_from),), user_id=user_id)
            for each in memories
        )
        if adds:
            raw = await self._call("POST", "v1/memory/batch", _body(MemoryBatch(adds=adds)))
            _check_kept(_parsed(BatchResult, raw))

    async def decided(self, task: DecideTask, *, user_id: str) -> MemoryEvent:
        """What the memory writer made of the turns. The user's name tells the write from all others."""
        write = _body(MemoryAdd(messages=task.turns, user_id=user_id))
        event_id = _parsed(_Accepted, await self._call("POST", "v1/memory/add", write, name=user_id)).event_id

        async def state() -> MemoryEvent:
            return _parsed(MemoryEvent, await self._call("GET", f"v1/memory/events/{event_id}"))

        return await self._ended(state, f"the write {event_id}")

    async def forget_user(self, user_id: str) -> None:
        """Erase all that is kept of the user."""
        await self._call("DELETE", "v1/memory", params={"user_id": user_id})

    async def _ended(self, state: Callable[[], Awaitable[_State]], what: str) -> _State:
        pause_s, longest_s = _POLL_S
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._wait_s
        while (found := await state()).status not in _ENDED:
            if loop.time() > deadline:
                raise Timeout(f"{what} did not end within {self._wait_s:g} s (--timeout-s)")
            await asyncio.sleep(pause_s)
            pause_s = min(1.5 * pause_s, longest_s)
        return found

    async def _call(
        self,
        method: str,
        path: str,
        body: JsonValue = None,
        *,
        params: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> bytes:
        key = {"Idempotency-Key": hashlib.sha256(name.encode()).hexdigest()} if name else None
        return await self._retries.get(
            lambda: self._http.json(method, path, body=body, params=params, headers=key),
        )


def base_url(url: str) -> str:
    """Where ``/v1`` begins, whether or not the URL names it. Raises DataError when it is none."""
    parsed = urlsplit(url)
    if parsed.scheme not in {"http", "https"} or not parsed.hostname:
        raise DataError(f"{url!r} is no http URL")
    return url.rstrip("/").removesuffix("/v1")


def _refusal(peer: str, status: int, raw: bytes, headers: Mapping[str, str]) -> MemloopError:
    try:
        said = ErrorEnvelope.model_validate_json(raw).error.message
    except ValidationError:
        said = raw.decode("utf-8", "replace")[:200]
    message, wait_s = f"the {peer} answered {status}: {said}", retry_after(headers)
    if status in {502, 503}:
        return Unavailable(message, retry_after_s=wait_s)
    if status == 504:
        return Timeout(message)
    return EngineError(message, engine_status=status, retry_after_s=wait_s)


def _check_kept(result: BatchResult) -> None:
    refused = next((outcome.error for outcome in result.results if outcome.error), None)
    if refused is not None:
        raise EngineError(f"a memory of the row was refused: {refused.message}", engine_status=422)


def _parsed(shape: type[T], raw: bytes) -> T:
    try:
        return shape.model_validate_json(raw)
    except ValidationError as error:
        raise DependencyError(f"the gateway's answer is no {shape.__name__}: is it another version?") from error


def _body(model: BaseModel) -> JsonValue:
    return model.model_dump(mode="json", exclude_none=True)
