"""The spans of all processes that run in a test, collected in memory."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memloop_service.tracing import use_provider


@dataclass(frozen=True)
class Seen:
    """A span that has ended."""

    name: str
    trace: str
    id: str
    parent: str | None
    attributes: Mapping[str, object]
    failed: bool


class Spans:
    """What was exported so far."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> list[Seen]:
        """Every span, in the order of their ends."""
        return [_seen(span) for span in self._exporter.get_finished_spans()]

    def named(self, name: str) -> list[Seen]:
        """Those of one name."""
        return [span for span in self.all() if span.name == name]

    def one(self, name: str) -> Seen:
        """The only one of a name."""
        (found,) = self.named(name)
        return found

    def path_to(self, span: Seen) -> Sequence[str]:
        """The names from the trace's root to the span."""
        by_id = {seen.id: seen for seen in self.all()}
        above = by_id.get(span.parent or "")
        return (*(self.path_to(above) if above is not None else ()), span.name)

    def text(self) -> str:
        """All that would leave the process."""
        return "\n".join(span.to_json() for span in self._exporter.get_finished_spans())


def _seen(span: ReadableSpan) -> Seen:
    context = span.get_span_context()
    assert context is not None
    return Seen(
        name=span.name,
        trace=f"{context.trace_id:032x}",
        id=f"{context.span_id:016x}",
        parent=f"{span.parent.span_id:016x}" if span.parent is not None else None,
        attributes=dict(span.attributes or {}),
        failed=not span.status.is_ok,
    )


@contextmanager
def collected_spans() -> Generator[Spans]:
    """Every app that is built meanwhile traces into it."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    use_provider(provider)
    try:
        yield Spans(exporter)
    finally:
        use_provider(None)
        provider.shutdown()
