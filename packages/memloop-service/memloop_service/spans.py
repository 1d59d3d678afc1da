"""What the processes need of tracing, whoever makes the spans. No attribute holds a user's text or id."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeAlias

from starlette.types import ASGIApp

Value: TypeAlias = str | int | float | bool | Sequence[str]
Attributes: TypeAlias = Mapping[str, Value]
Kind: TypeAlias = Literal["internal", "client", "consumer"]


class Span(Protocol):
    """A piece of work in a trace."""

    def note(self, attributes: Attributes) -> None:
        """Say more about it."""
        ...


class OpenSpan(Span, AbstractContextManager["OpenSpan"], Protocol):
    """A span that ends with its ``with`` block, in whatever task; what runs inside does not become part of it."""

    def outgoing(self) -> AbstractContextManager[None]:
        """Calls made meanwhile become part of it."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    def span(
        self, name: str, kind: Kind, attributes: Attributes, parent: Mapping[str, str]
    ) -> AbstractContextManager[Span]:
        """A span around what runs inside. ``parent``: the headers of one elsewhere, else the span at work."""
        ...

    def open_span(self, name: str, kind: Kind, attributes: Attributes) -> OpenSpan:
        """A span below the one at work."""
        ...

    def past_span(self, name: str, attributes: Attributes, *, began_ns: int, ended_ns: int) -> None:
        """A span of what is over, below the one at work; times since the epoch."""
        ...

    def around(self, app: ASGIApp) -> ASGIApp:
        """The app with a span around each request, below the client's own."""
        ...

    def flush(self) -> None:
        """Export what waits. Blocks."""
        ...
