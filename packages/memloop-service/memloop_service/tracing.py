"""Spans, where a process exports them; everywhere else nothing, for the price of one comparison.

``memloop_service.open_telemetry`` makes the spans; it is imported only when
``OTEL_EXPORTER_OTLP_ENDPOINT`` is set. Source of the names: OpenTelemetry semantic conventions, "Generative AI".
"""

import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Final

from memloop_service.spans import Attributes, Kind, OpenSpan, Span, Tracer

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

_NO_ATTRIBUTES: Final[Attributes] = MappingProxyType({})
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class _NoSpan:
    """Nothing is traced."""

    def note(self, attributes: Attributes) -> None:
        """Nothing."""

    def outgoing(self) -> AbstractContextManager[None]:
        """Nothing."""
        return _NOTHING

    def __enter__(self) -> "_NoSpan":
        return self

    def __exit__(self, *_: object) -> None:
        return None


_NOTHING: Final = nullcontext()
NO_SPAN: Final = _NoSpan()
"""What everything is without tracing."""


class _Switch:
    """The process's tracer. One for all, as there is one environment: spans are asked for deep in library code."""

    tracer: Tracer | None = None


def start_tracing(service: str) -> None:
    """Export spans by OTLP over HTTP if the standard environment says where to; ``service`` names the process."""
    if any(os.environ.get(name) for name in _ENDPOINTS):
        from memloop_service.open_telemetry import exporting_tracer

        use_tracer(exporting_tracer(service))


def use_tracer(tracer: Tracer | None) -> None:
    """Make spans with it from now on; None makes none."""
    _Switch.tracer = tracer


def tracer() -> Tracer | None:
    """The process's tracer, if it traces."""
    return _Switch.tracer


def span(
    name: str,
    attributes: Attributes = _NO_ATTRIBUTES,
    *,
    kind: Kind = "internal",
    parent: Mapping[str, str] = _NO_HEADERS,
) -> AbstractContextManager[Span]:
    """A span around what runs inside one coroutine: never around a ``yield`` of an async generator."""
    if _Switch.tracer is None:
        return NO_SPAN
    return _Switch.tracer.span(name, kind, attributes, parent)


def open_span(name: str, attributes: Attributes = _NO_ATTRIBUTES, *, kind: Kind = "internal") -> OpenSpan:
    """A span that may end in another task than it began in."""
    if _Switch.tracer is None:
        return NO_SPAN
    return _Switch.tracer.open_span(name, kind, attributes)


def past_span(name: str, attributes: Attributes, *, seconds: float) -> None:
    """A span that ends now and has taken so long."""
    if _Switch.tracer is not None:
        now = time.time_ns()
        _Switch.tracer.past_span(name, attributes, began_ns=now - int(seconds * 1e9), ended_ns=now)
