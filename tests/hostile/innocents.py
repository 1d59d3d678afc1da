"""Innocents of a tenant: they chat, add, search and read, each at a low steady rate, whatever the gateway does.

A request is due at its time, not after the one before, and its time counts from then on.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import aiohttp
import orjson

from memloop.chores import ended
from tests.gateway.api_rig import BOB_KEY

_PERIODS_S: Final = {"chat": 0.25, "add": 0.5, "search": 0.25, "read": 0.5}
_USERS: Final = 5
_TIMEOUT_S: Final = 30.0
_LOOK_S: Final = 0.5
_DOCUMENT: Final = "one two three four. " * 60
_FAILED: Final = "failed"
_UNDER_WAY: Final = {"queued", "in_progress"}
_Once: TypeAlias = Callable[[int], Awaitable[str | None]]


@dataclass(frozen=True)
class Sample:
    """One request: when it was due, how long it took from then on, the fault in its answer, and how late it began."""

    kind: str
    due: float
    took_s: float
    fault: str | None
    late_s: float = 0.0


@dataclass
class Innocents:
    """The clients. ``adds`` holds each accepted add until it was stored."""

    url: str
    samples: list[Sample] = field(default_factory=list[Sample])
    adds: "dict[str, Sample]" = field(default_factory=dict[str, Sample])
    _open: "set[asyncio.Task[None]]" = field(default_factory=set["asyncio.Task[None]"])
    _waiting: "set[asyncio.Task[None]]" = field(default_factory=set["asyncio.Task[None]"])

    async def chat(self, http: aiohttp.ClientSession, number: int) -> str | None:
        """A chat with recall; a degraded memory is a fault."""
        body = {"model": "m", "messages": [{"role": "user", "content": f"Where is thing {number % 50}?"}]}
        answer = await _post(http, "/v1/chat/completions", body | {"memory": {"user_id": _user(number)}})
        memory: dict[str, Any] = answer.get("memory") or {}
        error: object = memory.get("error") if "choices" in answer else answer.get(_FAILED, "no choices")
        return str(error) if error else None

    async def search(self, http: aiohttp.ClientSession, number: int) -> str | None:
        """A search of memories."""
        body = {"query": f"thing {number % 50}", "user_id": _user(number)}
        return (await _post(http, "/v1/memory/search", body)).get(_FAILED)

    async def add(self, http: aiohttp.ClientSession, number: int) -> str | None:
        """A queued write."""
        turn = {"role": "user", "content": f"Remember fact-{number}, the thing {number % 50}."}
        answer = await _post(http, "/v1/memory/add", {"messages": [turn], "user_id": _user(number)})
        if _FAILED not in answer:
            self._waiting.add(asyncio.create_task(self._written(http, answer["event_id"])))
        return answer.get(_FAILED)

    async def read(self, http: aiohttp.ClientSession, number: int) -> str | None:
        """A short read in the foreground."""
        body = {"model": "m", "question": f"Where is {number}?", "document": {"text": _DOCUMENT}, "chunk_tokens": 80}
        answer = await _post(http, "/v1/long-read", body)
        return answer.get(_FAILED) or (None if answer.get("status") == "completed" else str(answer)[:200])

    def stored(self, since: float, until: float) -> list[Sample]:
        """The adds accepted in that time; those that are not stored yet took until now."""
        return [add for add in self.adds.values() if since <= add.due < until]

    async def answered(self) -> None:
        """Wait until all requests that are under way now have an answer or have failed: the slowest count too."""
        if self._open:
            await asyncio.wait(set(self._open))

    async def _written(self, http: aiohttp.ClientSession, event_id: str) -> None:
        began, status = time.monotonic(), "queued"
        while status in _UNDER_WAY:
            self.adds[event_id] = Sample("stored", began, time.monotonic() - began, None)
            await asyncio.sleep(_LOOK_S)
            status = (await _answer(http.get(f"/v1/memory/events/{event_id}"))).get("status", "queued")
        fault = None if status == "completed" else status
        self.adds[event_id] = Sample("stored", began, time.monotonic() - began, fault)

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        """All kinds of requests meanwhile."""
        headers = {"Authorization": f"Bearer {BOB_KEY}"}
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=10)
        async with aiohttp.ClientSession(self.url, headers=headers, timeout=timeout, connector=connector) as http:
            kinds = {"chat": self.chat, "add": self.add, "search": self.search, "read": self.read}
            tasks = [asyncio.create_task(self._steadily(kind, partial(once, http))) for kind, once in kinds.items()]
            try:
                yield
            finally:
                await ended({*tasks, *self._waiting})

    async def _steadily(self, kind: str, once: _Once) -> None:
        due, number = time.monotonic(), 0
        async with asyncio.TaskGroup() as group:
            while True:
                due, number = due + _PERIODS_S[kind], number + 1
                await asyncio.sleep(due - time.monotonic())
                asked = group.create_task(self._ask(kind, due, once, number))
                self._open.add(asked)
                asked.add_done_callback(self._open.discard)

    async def _ask(self, kind: str, due: float, once: _Once, number: int) -> None:
        late_s = time.monotonic() - due
        fault = await once(number)
        self.samples.append(Sample(kind, due, time.monotonic() - due, fault, late_s))


def _user(number: int) -> str:
    return f"innocent{number % _USERS}"


async def _post(http: aiohttp.ClientSession, path: str, body: object) -> dict[str, Any]:
    return await _answer(http.post(path, data=orjson.dumps(body), headers={"Content-Type": "application/json"}))


async def _answer(asked: Any) -> dict[str, Any]:
    """The answer's JSON, or the reason under ``failed``."""
    try:
        async with asked as answer:
            raw = await answer.read()
            return orjson.loads(raw) if answer.status < 300 else {_FAILED: f"{answer.status} {raw[:160]!r}"}
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        return {_FAILED: repr(error)}
