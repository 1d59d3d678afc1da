"""A running gateway and a client for it, with the shapes that its tests ask for."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp
import orjson
from fastapi import FastAPI
from redis.asyncio import Redis

from gateway.chat.chat import Chat
from gateway.engine.backend import Backend
from gateway.main import build_app
from gateway.memory.memory import Memory
from gateway.settings import GatewaySettings
from gateway.worker import Work
from memloop.wire.memory import Source
from tests.fakes.asgi_server import running
from tests.fakes.streaming_engine import MODEL
from tests.gateway.rig import eventually

CHAT = "/v1/chat/completions"
Object: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.raw)

    @property
    def error(self) -> Any:
        """What stands under ``error``, and nothing beside it but what the API's own clients expect."""
        assert set(self.json) in ({"error"}, {"error", "detail"}, {"type", "error", "request_id"})
        return error_in(self.json)

    @property
    def events(self) -> list[bytes]:
        """The events of a stream and the comments before the last one, each without its blank line."""
        assert self.headers["Content-Type"].startswith("text/event-stream")
        events = [event for event in self.raw.split(b"\n\n") if event]
        while events and events[-1].startswith(b":"):  # on a slow machine one may come before the stream's end
            events.pop()
        return events

    @property
    def chunks(self) -> list[Any]:
        """The JSON of a stream's ``data:`` events, ``[DONE]`` left out."""
        data = [event.removeprefix(b"data: ") for event in self.events if event.startswith(b"data: ")]
        return [orjson.loads(value) for value in data if value != b"[DONE]"]

    @property
    def error_event(self) -> Any:
        """What stands under ``error`` in a stream's last event."""
        kind, _, data = self.events[-1].partition(b"\ndata: ")
        assert kind == b"event: error"
        return orjson.loads(data)["error"]

    @property
    def streamed_text(self) -> str:
        """The text of choice 0."""
        choices = [choice for chunk in self.chunks for choice in chunk.get("choices", ())]
        return "".join(choice["delta"].get("content") or "" for choice in choices)


@dataclass(frozen=True)
class Gateway:
    """A gateway under test."""

    url: str
    app: FastAPI
    http: aiohttp.ClientSession

    @property
    def memory(self) -> Memory:
        """Its memories."""
        return self.app.state.memory

    @property
    def backend(self) -> Backend:
        """Its engines."""
        return self.app.state.backend

    @property
    def chats(self) -> Chat:
        """Its chats."""
        return self.app.state.chat

    @property
    def redis(self) -> Redis:
        """Its client of Redis."""
        return self.app.state.state

    @property
    def work(self) -> Work:
        """What a worker in this process works with: the gateway's own slices."""
        state = self.app.state
        return Work(
            self.redis,
            self.backend,
            self.memory,
            state.reading,
            state.background,
            state.vector_stores,
            self.chats,
            self.memory.metrics,
        )

    async def post(self, path: str, body: object, *, headers: Mapping[str, str] | None = None) -> Answer:
        """POST JSON, or bytes as they are."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        sent = {"Content-Type": "application/json", **(headers or {})}
        async with self.http.post(self.url + path, data=raw, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> Answer:
        """GET."""
        async with self.http.get(self.url + path, headers=headers) as response:
            return Answer(response.status, response.headers, await response.read())

    async def chat(self, text: str = "Hi.", /, **fields: object) -> Answer:
        """A chat of one user message, with these further fields."""
        return await self.post(CHAT, question(text, **fields))

    async def metric(self, line: str) -> float:
        """The value of the sample whose name and labels are this text; 0 when there is none."""
        text = (await self.get("/metrics")).raw.decode()
        values = [float(sample.rpartition(" ")[2]) for sample in text.splitlines() if sample.startswith(line + " ")]
        return values[0] if values else 0.0

    async def until_metric(self, line: str, value: float) -> None:
        """Wait until the sample of that name and these labels has this value."""

        async def has() -> bool:
            return await self.metric(line) == value

        await eventually(has)

    async def until_served(self) -> None:
        """Wait until a chat is answered."""

        async def served() -> bool:
            return (await self.chat()).status == 200

        await eventually(served)

    async def queued_turns(self) -> list[tuple[Source, ...]]:
        """The turns of all memory writes that are queued, oldest first."""
        keys: AsyncIterator[bytes] = self.redis.scan_iter(match="memloop:*")  # pyright: ignore
        payloads = [await _payload(self.redis, key) async for key in keys]
        jobs = sorted((payload for payload in payloads if payload), key=lambda job: job["created_at"])
        return [tuple(Source.model_validate(turn) for turn in job["turns"]) for job in jobs]


async def _payload(redis: Redis, key: bytes) -> Object | None:
    if await redis.type(key) != "hash":
        return None
    raw = await redis.hget(key, "payload")  # pyright: ignore
    return orjson.loads(raw) if raw else None


def error_in(body: Any) -> Any:
    """The error of a body, in OpenAI's words if it is in Anthropic's style."""
    error = body["error"]
    if "type" in body:
        assert (body["type"], set(error)) == ("error", {"type", "message", "details"})
        return {
            "message": error["message"],
            "type": error["type"],
            "param": error["details"].get("param"),
            "code": error["details"].get("error_code"),
        }
    assert set(error) == {"message", "type", "param", "code"}
    return error


def question(text: str = "Hi.", /, **fields: object) -> Object:
    """A chat request of one user message."""
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}


def said(turns: tuple[Source, ...]) -> list[tuple[str, str]]:
    """Turns as (role, text)."""
    return [(turn.role, turn.content) for turn in turns]


def _connector() -> aiohttp.TCPConnector:
    """Lets idle connections go long before the server does, so that no request meets a closing one."""
    return aiohttp.TCPConnector(keepalive_timeout=1)


@asynccontextmanager
async def running_gateway(settings: GatewaySettings, **changes: object) -> AsyncGenerator[Gateway]:
    """A gateway with these settings and the changes to them, and a client."""
    app = build_app(GatewaySettings.model_validate({**settings.model_dump(), **changes}) if changes else settings)
    async with running(app) as url, aiohttp.ClientSession(connector=_connector()) as http:
        yield Gateway(url, app, http)
