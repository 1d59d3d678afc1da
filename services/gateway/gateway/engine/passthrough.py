"""Relays client requests to the engine and aborts the engine's work when the client disconnects."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any, Final

from fastapi import Request, Response

from gateway.access import Allowance
from gateway.engine.backend import Backend
from gateway.engine.engines import answer_in, is_event_stream, refusal, with_retry_after
from gateway.engine.meter import Meter, Outgoing, counted
from gateway.engine.served import LoopModel, open_call
from gateway.engine.streams import Relay, relay
from memloop.wire.errors import DependencyError
from memloop_clients import RawResponse
from memloop_service.http import (
    ClientGone,
    EventStream,
    Sink,
    Source,
    deadline_s,
    json_text,
    read_json,
    stopped_when_gone,
    within,
)
from memloop_service.tracing import current

_MAY_REFUSE_A_FIELD: Final = frozenset({400, 422})
_ASKING: Final = ("prompt", "input", "instructions")
MEMORY_HEADER: Final = "x-memloop-memory"
"""The response header of routes without memory; its value is ``none``."""


class EngineCall:
    """One engine call for a client whose connection is watched throughout.

    When the client disconnects, the connection to the engine is closed, which aborts the engine's request.
    """

    def __init__(self, request: Request, backend: Backend, model: LoopModel, meter: Meter) -> None:
        self._request = request
        self._backend = backend
        self._model = model
        self._meter = meter

    async def answer(
        self,
        path: str,
        body: Outgoing,
        *,
        stream: Relay,
        whole: Callable[[bytes], Awaitable[bytes]],
    ) -> Response:
        """Return the engine's answer: events pass through ``stream``, a whole body through ``whole``.

        Raises the engine's refusal, and Unavailable, Timeout or EngineError when the engine is unreachable or broken.
        """
        try:
            with ExitStack() as opened:
                async with within(deadline_s(self._request.headers)), stopped_when_gone(self._request.receive):
                    upstream = await self._opened(opened, body, path)
                    streams = upstream.succeeded and is_event_stream(upstream)
                    raw = b"" if streams else await upstream.read()
                if not upstream.succeeded:
                    raise await refusal(upstream)
                if streams:
                    return self.event_stream(partial(stream, upstream), opened.pop_all())
                answer = await whole(raw)
                self._meter.finish()
                kind = upstream.headers.get("Content-Type", "application/json")
                return Response(answer, status_code=upstream.status, media_type=kind)
        except ClientGone:
            self._backend.metrics.upstream_abort.inc()
            raise
        except DependencyError as error:
            self._backend.metrics.count_error(error, model=self._model.label)
            raise with_retry_after(error) from error.__cause__

    async def events(self, path: str, body: Outgoing, stream: Relay, out: Sink) -> None:
        """Send the engine's answer within a stream that has already begun. Raises as ``answer`` does."""
        try:
            with ExitStack() as opened:
                upstream = await self._opened(opened, body, path)
                if not upstream.succeeded:
                    raise await refusal(upstream)
                await stream(upstream, out)
        except DependencyError as error:
            self._backend.metrics.count_error(error, model=self._model.label)
            raise with_retry_after(error) from error.__cause__

    async def _opened(self, opened: ExitStack, body: Outgoing, path: str) -> RawResponse:
        """Send the body; to an engine that refuses the question for usage, without it. ``opened`` closes it."""
        call = self._meter.call = opened.enter_context(open_call(self._meter.operation, self._model.id))
        takes, model, send = self._backend.takes_question, self._model.label, self._model.engines.send
        with current(call):
            if body.plain is None or takes.get(model) is False:
                upstream = await send(body.body if body.plain is None else body.plain, path=path)
                opened.callback(upstream.close)
                return upstream
            upstream = await send(body.body, path=path)
            opened.callback(upstream.close)
            if upstream.status in _MAY_REFUSE_A_FIELD and model not in takes:
                upstream.close()
                upstream = await send(body.plain, path=path)
                opened.callback(upstream.close)
                if upstream.succeeded:
                    takes[model] = False
            elif upstream.succeeded:
                takes[model] = True
            return upstream

    def event_stream(self, source: Source, owns: AbstractContextManager[object] | None = None) -> Response:
        """Stream events to the client with heartbeats while idle; stop when the client disconnects."""
        return EventStream(
            source,
            owns=owns,
            heartbeat_s=self._backend.heartbeat_s,
            on_abandoned=self._backend.metrics.upstream_abort.inc,
        )


async def pass_through(request: Request, backend: Backend, allowance: Allowance, operation: str) -> Response:
    """Answer a request as the engine does, without memory. Raises as ``EngineCall.answer`` does."""
    meter = Meter(backend.metrics, f"/v1/{operation}", operation, allowance)
    with meter.ours():
        body = await read_json(request)
        model = backend.models.asked(body.fields.get("model"))
        meter.goes_to(model)
        await allowance.admit(*(body.fields.get(field) for field in _ASKING))

    def stream(upstream: RawResponse, out: Sink) -> Coroutine[Any, Any, None]:
        return relay(upstream, meter, out, hides_usage=sent.hides_usage)

    async def whole(raw: bytes) -> bytes:
        meter.tokens(answer_in(raw).get("usage"))
        return raw

    renames = model.renames(body.fields.get("model"))
    outgoing = json_text({**body.fields, "model": model.engine_model}) if renames else body.raw
    sent = counted(outgoing, body.fields) if operation == "completions" else Outgoing(outgoing)
    call = EngineCall(request, backend, model, meter)
    response = await call.answer(operation, sent, stream=stream, whole=whole)
    response.headers[MEMORY_HEADER] = "none"
    return response
