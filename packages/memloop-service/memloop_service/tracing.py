"""Creates spans by OpenTelemetry's API: exported if the process is configured to, no-ops otherwise.

No attribute or error holds a user's text or ID: a failed span has the exception's type, not its message, and a model's
name, which a client supplies, is truncated. Source of the names: OpenTelemetry semantic conventions, "Generative client
AI spans".
"""

import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, cast

from opentelemetry.trace import (
    INVALID_SPAN,
    NoOpTracer,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    TracerProvider,
    set_span_in_context,
    use_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import Attributes
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memloop.wire.base import request_id, trace, traced_as

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_UNTRACED: Final = frozenset({"/livez", "/readyz", "/metrics"})
_HEADERS: Final = TraceContextTextMapPropagator()
_OFF: Final = NoOpTracer()
_NO_HEADERS: Final[Mapping[str, str]] = {}
_NO_SPAN: Final = nullcontext(INVALID_SPAN)
"""A block without a span."""


@dataclass
class _Tracing:
    """A process's tracing."""

    tracer: Tracer
    flush: Callable[[], object] | None


_PROCESS: Final = _Tracing(_OFF, None)
"""One per process, like its environment: library code creates spans at any depth."""


def start_tracing(service: str) -> None:
    """Export spans by OTLP over HTTP if the standard environment names an endpoint; ``service`` names the process."""
    if any(os.environ.get(name) for name in _ENDPOINTS):
        from memloop_service.span_export import exporting_provider

        provider = exporting_provider(service)
        use_provider(provider, flush=provider.force_flush)


def use_provider(provider: TracerProvider | None, *, flush: Callable[[], object] | None = None) -> None:
    """Create spans with this provider; None makes them no-ops. ``flush`` exports pending spans, blocking."""
    _PROCESS.tracer = _OFF if provider is None else provider.get_tracer("memloop")
    _PROCESS.flush = flush


def is_tracing() -> bool:
    return _PROCESS.tracer is not _OFF


def flush_spans() -> None:
    """Export the pending spans. Blocks."""
    if _PROCESS.flush is not None:
        _PROCESS.flush()


def span(
    name: str,
    attributes: Attributes = None,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    parent: Mapping[str, str] = _NO_HEADERS,
) -> AbstractContextManager[Span]:
    """Open a span around a block; calls and spans inside become part of it.

    ``parent``: the trace headers of a remote span; the default is the current span. Never use it around a ``yield`` of
    an async generator.
    """
    return _NO_SPAN if _is_untraced(parent) else _as_current(_span(name, attributes, kind, parent))


@contextmanager
def _as_current(span: AbstractContextManager[Span]) -> Generator[Span]:
    with span as opened, current(opened):
        yield opened


def open_span(
    name: str,
    attributes: Attributes = None,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    parent: Mapping[str, str] = _NO_HEADERS,
) -> AbstractContextManager[Span]:
    """Open a span that may end in another task. Only code inside ``current`` becomes part of it."""
    return _NO_SPAN if _is_untraced(parent) else _span(name, attributes, kind, parent)


@contextmanager
def _span(name: str, attributes: Attributes, kind: SpanKind, parent: Mapping[str, str]) -> Generator[Span]:
    # The span that the headers name; None (the current span) if they name none
    opened = _PROCESS.tracer.start_span(
        name, context=_HEADERS.extract(parent) if parent.get("traceparent") else None, kind=kind, attributes=attributes
    )
    try:
        yield opened
    except BaseException as error:
        opened.set_status(StatusCode.ERROR)
        opened.set_attribute("error.type", type(error).__name__)
        raise
    finally:
        opened.end()


def current(opened: Span) -> AbstractContextManager[object]:
    """Make calls and spans inside the block part of the span."""
    return _NO_SPAN if opened is INVALID_SPAN or not opened.get_span_context().is_valid else _current(opened)


@contextmanager
def _current(opened: Span) -> Generator[None]:
    headers: dict[str, str] = {}
    _HEADERS.inject(headers, set_span_in_context(opened))
    with use_span(opened, record_exception=False, set_status_on_exception=False), traced_as(headers):
        yield


def _is_untraced(parent: Mapping[str, str]) -> bool:
    """Return whether a span would be a no-op without a remote span whose headers go on."""
    return _PROCESS.tracer is _OFF and not parent and not trace.get()


_OPERATIONS: Final = {"completions": "text_completion", "responses": "chat"}
_MODEL_CHARS: Final = 128


def model_call(operation: str, model: object) -> tuple[str, dict[str, str]]:
    """Return name and attributes of the span of a model's call; ``operation`` is named as in the metrics."""
    name = _OPERATIONS.get(operation, operation)
    asked = str(model)[:_MODEL_CHARS]
    attributes = {"gen_ai.operation.name": name, "gen_ai.provider.name": "openai", "gen_ai.request.model": asked}
    return f"{name} {asked}", attributes


def note_usage(call: Span, *, input_tokens: int | None, output_tokens: int | None) -> None:
    """Record the token counts that the engine reported."""
    counts = {"gen_ai.usage.input_tokens": input_tokens, "gen_ai.usage.output_tokens": output_tokens}
    call.set_attributes({name: count for name, count in counts.items() if count is not None})


def past_span(name: str, attributes: Attributes, *, seconds: float) -> None:
    """Record a span below the current one that ends now and took ``seconds``."""
    now = time.time_ns()
    _PROCESS.tracer.start_span(name, attributes=attributes, start_time=now - int(seconds * 1e9)).end(now)


def traced(app: ASGIApp) -> ASGIApp:
    """Wrap the app in a span per request, except for health and metrics."""

    async def around(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _UNTRACED:
            await app(scope, receive, send)
            return
        method = cast(str, scope["method"])
        asked = {"http.request.method": method}
        with span(method, asked, kind=SpanKind.SERVER, parent=Headers(scope=scope)) as opened:

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = cast(int, message["status"])
                    opened.set_attribute("http.response.status_code", status)
                    opened.set_attribute("memloop.request_id", request_id.get())
                    route = cast("str | None", getattr(scope.get("route"), "path", None))
                    if route is not None:
                        opened.set_attribute("http.route", route)
                        opened.update_name(f"{scope['method']} {route}")
                    if status >= 500:
                        opened.set_status(StatusCode.ERROR)
                await send(message)

            await app(scope, receive, noted)

    return around
