"""The rig with the API in front of it, on a real port."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from tests.fakes.job_engine import Body, Reply
from tests.gateway.rig import Rig, rig
from tests.gateway.running import Answer, Gateway, running_gateway

ALICE_KEY, BOB_KEY, OPERATOR_KEY = "alice-key", "bob-key", "operator-key"


def configured(tenant: str, key: str, *options: str) -> str:
    """An entry of ``MEMLOOP_API_KEYS``."""
    return " ".join([f"{tenant}:{hashlib.sha256(key.encode()).hexdigest()}", *options])


TWO_TENANTS = f"{configured('a', ALICE_KEY)},{configured('b', BOB_KEY)}"
OPERATED = f"{TWO_TENANTS},{configured('ops', OPERATOR_KEY, 'scopes=admin')}"
"""The two tenants, and the operator."""


@dataclass(frozen=True)
class Api:
    """A running API over a rig."""

    rig: Rig
    gateway: Gateway

    async def call(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Any request; a body goes as JSON."""
        raw = None if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        sent = {"Content-Type": "application/json", **(headers or {})}
        async with self.gateway.http.request(method, self.gateway.url + path, data=raw, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, **headers: str) -> Answer:
        """GET."""
        return await self.call("GET", path, headers=headers)

    async def post(self, path: str, body: object) -> Answer:
        """POST."""
        return await self.call("POST", path, body)

    async def decided(self, add: object) -> None:
        """Add without ``sync``, so that the turns may be buffered, and wait for the writer's decision."""
        answer = await self.post("/v1/memory/add", add)
        assert answer.status == 202, answer.raw
        await self.rig.event(answer.json["event_id"])


@asynccontextmanager
async def api(
    redis_url: str, answer: Callable[[Body], Reply], *, hang_at: int | None = None, **changes: Any
) -> AsyncGenerator[Api]:
    """An API, a scripted engine and a small store; no worker."""
    async with rig(redis_url, answer, hang_at=hang_at, **changes) as it, running_gateway(it.settings) as gateway:
        yield Api(it, gateway)


def events_of(answer: Answer) -> list[tuple[str, Any]]:
    """The named events of a stream as (name, data)."""
    return [_event(event) for event in answer.events if not event.startswith(b":")]


def _event(event: bytes) -> tuple[str, Any]:
    name, data = event.split(b"\n", 1)
    return name.removeprefix(b"event: ").decode(), orjson.loads(data.removeprefix(b"data: "))
