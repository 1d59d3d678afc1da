"""An engine over real HTTP that speaks OpenAI's JSON and events and does what a test tells it.

    engine.will(Says("Hello"), Refuses(400, {...}), Cuts("Hel"), Hangs())

Each call takes the next behaviour; when none is left it says "Hello.". What it was sent is in ``received``.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import orjson
from aiohttp import web

from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S
from tests.fakes.web_server import serving

MODEL = "fake-model"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
Object: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Says:
    """A reply; a stream sends the text in these pieces, ``pause_s`` apart. ``extra`` goes into every body."""

    text: str = "Hello."
    pieces: Sequence[str] | None = None
    finish_reason: str = "stop"
    tool_calls: Sequence[Object] = ()
    pause_s: float = 0.0
    done: bool = True
    extra: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class Refuses:
    """An error status with this body."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Cuts:
    """Streams the text as one delta and half of the next event, then drops the connection."""

    text: str = "Hel"


@dataclass(frozen=True)
class Hangs:
    """Streams the text, its end included with ``finished``, and then nothing until the client leaves."""

    text: str = ""
    finished: bool = False


@dataclass(frozen=True)
class SendsBytes:
    """Sends exactly these bytes, piece by piece."""

    pieces: Sequence[bytes]
    content_type: str = "application/json"


Behaviour: TypeAlias = Says | Refuses | Cuts | Hangs | SendsBytes


@dataclass(frozen=True)
class Received:
    """One request as the engine got it."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    port: int
    """The client's: the same for requests over one connection."""

    @property
    def json(self) -> Any:
        """The body."""
        return orjson.loads(self.raw)


class FakeEngine:
    """The engine's state. ``running`` counts open requests, ``aborted`` those whose client left early.

    ``models`` are the listed ids, with the fields of ``model_row``; None is an engine without a list. ``template``
    raises ValueError for the messages of a chat that its chat template refuses; the engine then answers 400 with the
    error's text, as vLLM does.
    """

    def __init__(self) -> None:
        self.url = ""
        self.received: list[Received] = []
        self.running = 0
        self.aborted = 0
        self.models: tuple[str, ...] | None = (MODEL,)
        self.model_row: Object = {"object": "model", "created": 0, "owned_by": "fake"}
        self.template: Callable[[Sequence[Object]], None] | None = None
        self._port = free_port()
        self._behaviours: deque[Behaviour] = deque()
        self._stack = AsyncExitStack()
        self._change = asyncio.Condition()

    def will(self, *behaviours: Behaviour) -> None:
        """Do these, one per request."""
        self._behaviours.extend(behaviours)

    @property
    def last(self) -> Received:
        """The newest request."""
        return self.received[-1]

    async def start(self) -> None:
        """Listen on a port of its own, at first and again after ``stop``."""
        routes = [web.get("/v1/models", self._models), web.post("/v1/{path:.+}", self._answer)]
        self.url = await self._stack.enter_async_context(serving(routes, port=self._port)) + "/v1"

    async def stop(self) -> None:
        """Be gone: connections are refused from now on."""
        await self._stack.aclose()

    async def until_running(self, count: int, *, within_s: float = PATIENCE_S) -> None:
        """Wait until that many requests are open."""
        async with asyncio.timeout(within_s), self._change:
            await self._change.wait_for(lambda: self.running == count)

    async def _models(self, request: web.Request) -> web.Response:
        del request
        if self.models is None:
            return _json({"error": {"message": "Resource not found", "code": "404"}}, status=404)
        rows = [{"id": name, **self.model_row, "root": f"/models/{name}"} for name in self.models]
        return _json({"object": "list", "data": rows})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        port = request.get_extra_info("peername")[1]
        received = Received(request.match_info["path"], dict(request.headers), await request.read(), port)
        self.received.append(received)
        try:
            if self.template is not None:
                self.template(received.json["messages"])
        except ValueError as refusal:
            return _json({"error": {"message": str(refusal), "type": "BadRequestError", "code": 400}}, status=400)
        behaviour = self._behaviours.popleft() if self._behaviours else Says()
        await self._count(1)
        try:
            return await _behave(request, received.json, behaviour)
        except asyncio.CancelledError:
            self.aborted += 1
            raise
        finally:
            await self._count(-1)

    async def _count(self, step: int) -> None:
        async with self._change:
            self.running += step
            self._change.notify_all()


@asynccontextmanager
async def fake_engine() -> AsyncGenerator[FakeEngine]:
    """A running fake engine."""
    engine = FakeEngine()
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


async def _behave(request: web.Request, body: Object, behaviour: Behaviour) -> web.StreamResponse:
    match behaviour:
        case Refuses():
            return _json(behaviour.body, status=behaviour.status, headers=behaviour.headers)
        case SendsBytes():
            return await _send_bytes(request, behaviour)
        case Cuts():
            return await _cut(request, behaviour)
        case Hangs():
            return await _hang(request, behaviour, streams=bool(body.get("stream")))
        case Says():
            return await _stream(request, body, behaviour) if body.get("stream") else _json(_completion(behaviour))


def _json(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return web.Response(body=raw, status=status, headers={"Content-Type": "application/json", **(headers or {})})


def _completion(says: Says) -> Object:
    message: Object = {"role": "assistant", "content": None if says.tool_calls else says.text}
    if says.tool_calls:
        message["tool_calls"] = list(says.tool_calls)
    choice = {"index": 0, "message": message, "finish_reason": says.finish_reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL}
    return {**head, "choices": [choice], "usage": USAGE, **says.extra}


def _chunk(delta: Object, finish_reason: str | None = None, extra: Mapping[str, object] | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return _event({**_chunk_head(), "choices": [choice], **(extra or {})})


def _chunk_head() -> Object:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}


def _event(value: object) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


async def _open(request: web.Request, content_type: str = "text/event-stream") -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": content_type})
    await response.prepare(request)
    return response


async def _stream(request: web.Request, body: Object, says: Says) -> web.StreamResponse:
    response = await _open(request)
    await response.write(_chunk({"role": "assistant"}, extra=says.extra))
    for piece in says.pieces or ([] if says.tool_calls else [says.text]):
        await asyncio.sleep(says.pause_s)
        await response.write(_chunk({"content": piece}, extra=says.extra))
    for index, call in enumerate(says.tool_calls):
        await response.write(_chunk({"tool_calls": [{"index": index, **call}]}))
    await response.write(_chunk({}, says.finish_reason))
    if cast(Object, body.get("stream_options") or {}).get("include_usage"):
        await response.write(_event({**_chunk_head(), "choices": [], "usage": USAGE}))
    if says.done:
        await response.write(b"data: [DONE]\n\n")
    return response


async def _cut(request: web.Request, cuts: Cuts) -> web.StreamResponse:
    response = await _open(request)
    await response.write(_chunk({"content": cuts.text}))
    await response.write(b'data: {"id": "chatcmpl-1", "cho')
    await asyncio.sleep(0.01)
    if request.transport is not None:
        request.transport.abort()
    return response


async def _hang(request: web.Request, hangs: Hangs, *, streams: bool) -> web.StreamResponse:
    if streams:
        response = await _open(request)
        if hangs.text:
            await response.write(_chunk({"content": hangs.text}))
        if hangs.finished:
            await response.write(_chunk({}, "stop"))
    await asyncio.Event().wait()
    raise AssertionError


async def _send_bytes(request: web.Request, sends: SendsBytes) -> web.StreamResponse:
    response = await _open(request, sends.content_type)
    for piece in sends.pieces:
        await response.write(piece)
        await asyncio.sleep(0.002)
    return response
