"""What ties together the logs and traces that one request leaves in several processes.

Both values belong to the task at hand and go with every call that it makes: the request id in
``X-Client-Request-Id``, the trace in W3C Trace Context's headers. A queued job keeps them for the worker. The tenant,
whose account the task's tokens go to, stays in the process.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

from memloop.wire.base import Wire

CALLERS_ID: Final = "x-client-request-id"
"""The header that names the caller's own request."""

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered or, in a worker, that queued the job; empty outside of one."""

spender: ContextVar[str] = ContextVar("spender", default="")
"""The tenant whose request is being answered or whose job is being run; empty outside of both."""

trace: ContextVar[Mapping[str, str]] = ContextVar("trace", default=MappingProxyType({}))
"""``traceparent``, and ``tracestate`` if any, of the span at work; empty without tracing."""


class Origin(Wire):
    """Where a job comes from."""

    request_id: str = ""
    traceparent: str = ""

    @classmethod
    def here(cls) -> "Origin":
        """The request and the span at work."""
        return cls(request_id=request_id.get(), traceparent=trace.get().get("traceparent", ""))


def outgoing() -> dict[str, str]:
    """The headers of a call that is made on behalf of the request at hand."""
    own = request_id.get()
    return {CALLERS_ID: own, **trace.get()} if own else dict(trace.get())


def trace_id() -> str:
    """The trace that the span at work belongs to, 32 hex digits; empty without tracing."""
    return trace.get().get("traceparent", "")[3:35]


@contextmanager
def traced_as(headers: Mapping[str, str]) -> Generator[None]:
    """Calls made meanwhile carry these headers of a span."""
    token = trace.set(headers)
    try:
        yield
    finally:
        trace.reset(token)
