"""One client's call of an engine: what is sent, how it is measured, and its end when the client disconnects.

Total time, time without the engine, time to the first byte, and the tokens of both ways are measured. Engines are asked
for the usage of streams whose clients did not ask for it; without it no tokens of such a stream could be counted
(docs/decisions/0087-every-stream-is-counted.md). Those clients do not get it.
"""

import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from fastapi import Request, Response
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind

from gateway.access import Allowance
from gateway.engine.backend import Backend
from gateway.engine.engines import answer_in, refusal, with_retry_after
from gateway.engine.served import LoopModel
from gateway.metrics import Metrics
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError, MemloopError
from memloop_clients import RawResponse
from memloop_clients.replies import fault_in
from memloop_service.http import (
    Awaited,
    ClientGone,
    EventStream,
    Sink,
    Source,
    data_event,
    deadline_s,
    json_text,
    object_in,
    parsed_object,
)
from memloop_service.tracing import current, model_call, note_usage, open_span

More: TypeAlias = Callable[[], Awaitable[bytes]]
"""Returns the next bytes of an engine's events; none at the end. Raises DependencyError."""
Relay: TypeAlias = Callable[[More, Sink], Coroutine[Any, Any, None]]
"""Sends the engine's events to the client."""
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_DONE: Final = b"data: [DONE]\n\n"
_MAY_REFUSE_A_FIELD: Final = frozenset({400, 422})
_INPUT: Final = ("prompt_tokens", "input_tokens")
_OUTPUT: Final = ("completion_tokens", "output_tokens")
"""The field names of chat completions and of responses."""
OPTIONS: Final = "stream_options"
_ASKS: Final = b',"stream_options":{"include_usage":true}}'


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A body for the engine; ``plain`` is the same without the question for usage that the gateway has added.

    ``streams``: the client asked for a stream.
    """

    body: bytes
    plain: bytes | None = None
    streams: bool = False

    @property
    def hides_usage(self) -> bool:
        """Whether the client did not ask for the usage."""
        return self.plain is not None


def counted(body: bytes, fields: Json) -> Outgoing:
    """Return a body that asks for the usage if the answer streams; ``fields`` are the client's own."""
    options = object_in(fields.get(OPTIONS))
    if fields.get("stream") is not True:
        return Outgoing(body)
    if options.get("include_usage") is True:
        return Outgoing(body, streams=True)
    if OPTIONS not in fields:
        return Outgoing(body.rstrip()[:-1] + _ASKS, body, streams=True)
    asking = {**parsed_object(body), OPTIONS: {**options, "include_usage": True}}
    return Outgoing(json_text(asking), body, streams=True)


async def events_of(upstream: RawResponse) -> More:
    """Return the events of an answer to a request for a stream; an engine that has no streams answers it whole."""
    if upstream.headers.get("Content-Type", _JSON).partition(";")[0].strip().lower() != _JSON:
        return upstream.some
    answer = answer_in(await upstream.read())
    if (fault := fault_in(answer)) is not None:
        raise fault
    kind = answer.get("object")
    head: Json = {**answer, "object": "chat.completion.chunk"} if kind == "chat.completion" else answer
    said: Json = {name: value for name, value in head.items() if name != "usage"}
    parts = [said, {**head, "choices": []}] if answer.get("usage") else [said]
    left = [b"", b"".join([*(data_event(json_text(part)) for part in parts), _DONE])]

    async def more() -> bytes:
        return left.pop() if left else b""

    return more


def for_engine(fields: Json, model: LoopModel) -> Json:
    """Return a request's fields with the name that the model has at its engine, the same if they have it.

    A candidate serves requests that name its incumbent. The engine decides about a request that names none.
    """
    named = fields.get("model")
    if (named if isinstance(named, str) else model.id) == model.engine_model:
        return fields
    return {**fields, "model": model.engine_model}


class _Stopwatch:
    """Adds up the seconds spent in its ``with`` blocks."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.total_s += time.perf_counter() - self._began


class Meter:
    """One request to the engine. ``operation`` is ``chat``, ``completions``, ``embeddings`` or ``responses``."""

    def __init__(self, metrics: Metrics, route: str, operation: str, allowance: Allowance) -> None:
        self._allowance = allowance
        self._metrics = metrics
        self._route = route
        self.operation: Final = operation
        self._model = ""
        self.call: Span = INVALID_SPAN
        """The trace span of the engine's call."""
        self._started = time.perf_counter()
        self._ours = _Stopwatch()
        self._saw_byte = False
        self._lost = False

    def goes_to(self, model: LoopModel) -> None:
        """Set the model that serves the request, once the request has been read."""
        self._model = model.label

    def ours(self) -> AbstractContextManager[None]:
        """Count the block's time as the gateway's own. Blocks must not nest."""
        return self._ours

    def first_byte(self) -> None:
        """Record the engine's first streamed byte; later calls have no effect."""
        if not self._saw_byte:
            self._saw_byte = True
            self._metrics.time_to_first_token_seconds.observe(time.perf_counter() - self._started)

    @property
    def counts_tokens(self) -> bool:
        """Whether every stream event must be passed to ``streamed``."""
        return self._allowance.counts_tokens

    def streamed(self) -> None:
        """Count one event of the engine's stream."""
        self._allowance.streamed()

    def tokens(self, usage: object) -> None:
        """Record the engine's reported usage, if any."""
        self._allowance.usage(usage)
        given = object_in(usage)
        asked, replied = _count(given, _INPUT), _count(given, _OUTPUT)
        if asked is not None:
            self._metrics.count_tokens("input", self.operation, self._model, asked)
        if replied is not None:
            self._metrics.count_tokens("output", self.operation, self._model, replied)
        if self.call.is_recording():
            note_usage(self.call, input_tokens=asked, output_tokens=replied)

    def broken(self) -> None:
        """Count a stream that began and ended with an error of ours or of the engine's."""
        self._metrics.streams_broken.labels(self._route).inc()

    def lost(self, error: MemloopError) -> None:
        """Record that the engine failed in mid-stream."""
        self._lost = True
        self._metrics.count_error(error, model=self._model)
        self.broken()

    def finish(self) -> None:
        """Record the completed answer."""
        self._metrics.count_overhead(self._route, self._ours.total_s)
        if not self._lost:
            self._metrics.count_call(self._model, time.perf_counter() - self._started - self._ours.total_s)


def _count(usage: Json, names: tuple[str, str]) -> int | None:
    count = usage.get(names[0], usage.get(names[1]))
    return count if isinstance(count, int) else None


@dataclass(frozen=True, slots=True)
class EngineCall:
    """One engine call for a client whose connection is watched throughout.

    When the client disconnects, the connection to the engine is closed, which aborts the engine's request.
    """

    request: Request
    backend: Backend
    model: LoopModel
    meter: Meter

    async def answer(
        self, path: str, body: Outgoing, *, stream: Relay, whole: Callable[[bytes], Awaitable[bytes]]
    ) -> Response:
        """Return the engine's answer: events pass through ``stream``, a whole body through ``whole``.

        Raises the engine's refusal, and Unavailable, Timeout or EngineError when the engine is unreachable or broken.
        """
        try:
            with ExitStack() as opened:
                async with Awaited(self.request.receive, seconds=deadline_s(self.request.headers)):
                    upstream = await self._opened(opened, body, path)
                    if not upstream.succeeded:
                        raise await refusal(upstream)
                    kind = upstream.headers.get("Content-Type", _JSON)
                    streams = body.streams or kind.startswith(_EVENTS)
                    more = await events_of(upstream) if streams else None
                    raw = b"" if streams else await upstream.read()
                if more is not None:
                    return self.event_stream(partial(stream, more), opened.pop_all())
                answer = await whole(raw)
                self.meter.finish()
                return Response(answer, status_code=upstream.status, media_type=kind)
        except ClientGone:
            self.backend.metrics.upstream_abort.inc()
            raise
        except DependencyError as error:
            self.backend.metrics.count_error(error, model=self.model.label)
            raise with_retry_after(error) from error.__cause__

    async def events(self, path: str, body: Outgoing, stream: Relay, out: Sink) -> None:
        """Send the engine's answer within a stream that has already begun. Raises as ``answer`` does."""
        try:
            with ExitStack() as opened:
                upstream = await self._opened(opened, body, path)
                if not upstream.succeeded:
                    raise await refusal(upstream)
                await stream(await events_of(upstream), out)
        except DependencyError as error:
            self.backend.metrics.count_error(error, model=self.model.label)
            raise with_retry_after(error) from error.__cause__

    async def _opened(self, opened: ExitStack, body: Outgoing, path: str) -> RawResponse:
        """Send the body; to an engine that refuses the question for usage, without it. ``opened`` closes it."""
        named = model_call(self.meter.operation, self.model.id)
        call = self.meter.call = opened.enter_context(open_span(*named, kind=SpanKind.CLIENT))
        takes, model, send = self.backend.takes_question, self.model.label, self.model.engines.send
        plain = body.body if body.plain is None else body.plain
        asks = body.plain is not None and takes.get(model) is not False
        with current(call):
            upstream = await send(body.body if asks else plain, path=path)
            opened.callback(upstream.close)
            if asks and upstream.succeeded:
                takes[model] = True
            elif asks and upstream.status in _MAY_REFUSE_A_FIELD and model not in takes:
                upstream.close()
                upstream = await send(plain, path=path)
                opened.callback(upstream.close)
                if upstream.succeeded:
                    takes[model] = False
        return upstream

    def event_stream(self, source: Source, owns: AbstractContextManager[object] | None = None) -> Response:
        """Stream events to the client with heartbeats while idle; stop when the client disconnects."""
        return EventStream(
            source,
            owns=owns,
            heartbeat_s=self.backend.heartbeat_s,
            on_abandoned=self.backend.metrics.upstream_abort.inc,
        )
