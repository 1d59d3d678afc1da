"""Spans by OpenTelemetry's SDK. What an exception says stays out of them: it may quote a user."""

import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Final, Self, cast

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memloop.wire import correlation
from memloop_service.spans import Attributes, Kind

_KINDS: Final[Mapping[Kind, SpanKind]] = {
    "internal": SpanKind.INTERNAL,
    "client": SpanKind.CLIENT,
    "consumer": SpanKind.CONSUMER,
}
_HEADERS: Final = TraceContextTextMapPropagator()
_UNTRACED: Final = frozenset({"/livez", "/readyz", "/metrics"})


def exporting_tracer(service: str) -> "OpenTelemetry":
    """A tracer that exports in batches by OTLP over HTTP, as the standard environment variables say."""
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: service}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return OpenTelemetry(provider)


class OpenTelemetry:
    """A ``Tracer``."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("memloop")

    @contextmanager
    def span(self, name: str, kind: Kind, attributes: Attributes, parent: Mapping[str, str]) -> Generator["_SdkSpan"]:
        """A span around what runs inside."""
        with self._current(name, _KINDS[kind], attributes, parent) as current:
            yield current

    def open_span(self, name: str, kind: Kind, attributes: Attributes) -> "_SdkSpan":
        """A span below the one at work."""
        return _SdkSpan(self._tracer.start_span(name, kind=_KINDS[kind], attributes=attributes))

    def past_span(self, name: str, attributes: Attributes, *, began_ns: int, ended_ns: int) -> None:
        """A span of what is over."""
        self._tracer.start_span(name, attributes=attributes, start_time=began_ns).end(ended_ns)

    def around(self, app: ASGIApp) -> ASGIApp:
        """The app with a span around each request but those for health and metrics."""

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] in _UNTRACED:
                await app(scope, receive, send)
                return
            method = cast(str, scope["method"])
            asked = {"http.request.method": method}
            with self._current(method, SpanKind.SERVER, asked, Headers(scope=scope)) as current:
                await app(scope, receive, current.noting(scope, send))

        return traced

    def flush(self) -> None:
        """Export what waits."""
        self._provider.force_flush()

    @contextmanager
    def _current(
        self, name: str, kind: SpanKind, attributes: Attributes, parent: Mapping[str, str]
    ) -> Generator["_SdkSpan"]:
        opened = _SdkSpan(self._tracer.start_span(name, context=_context(parent), kind=kind, attributes=attributes))
        with opened, opened.at_work():
            yield opened


class _SdkSpan:
    """An ``OpenSpan``."""

    def __init__(self, inner: trace.Span) -> None:
        self._inner = inner

    def note(self, attributes: Attributes) -> None:
        """Say more about it."""
        self._inner.set_attributes(attributes)

    def outgoing(self) -> AbstractContextManager[None]:
        """Calls made meanwhile become part of it."""
        headers: dict[str, str] = {}
        _HEADERS.inject(headers, trace.set_span_in_context(self._inner))
        return correlation.traced_as(headers)

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Spans and calls made meanwhile become part of it."""
        current = trace.use_span(self._inner, record_exception=False, set_status_on_exception=False)
        with current, self.outgoing():
            yield

    def noting(self, scope: Scope, send: Send) -> Send:
        """The ASGI ``send`` that notes the answer's status, and the route, which is known by then."""

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._answered(scope, cast(int, message["status"]))
            await send(message)

        return noted

    def _answered(self, scope: Scope, status: int) -> None:
        self._inner.set_attribute("http.response.status_code", status)
        self._inner.set_attribute("memloop.request_id", correlation.request_id.get())
        route = cast("str | None", getattr(scope.get("route"), "path", None))
        if route is not None:
            self._inner.set_attribute("http.route", route)
            self._inner.update_name(f"{scope['method']} {route}")
        if status >= 500:
            self._inner.set_status(StatusCode.ERROR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._inner.set_status(StatusCode.ERROR)
            self._inner.set_attribute("error.type", kind.__name__)
        self._inner.end()


def _context(parent: Mapping[str, str]) -> Context | None:
    """The span that the headers name, wherever it is; None (the span at work) when they name none."""
    return _HEADERS.extract(parent) if parent.get("traceparent") else None
