"""Headers that name the caller or whose data it asks for, of which a request has at most one each."""

from typing import Final

from starlette.datastructures import Headers

from memloop.wire.errors import InvalidRequest

USER_HEADER: Final = "x-memory-user-id"
AGENT_HEADER: Final = "x-memory-agent-id"
TASK_HEADERS: Final = ("x-memory-task", "x-openwebui-task")
"""Name a front end's own task, such as a title: a chat without memory."""
_SINGLE: Final = (
    "host",
    "authorization",
    "x-api-key",
    "x-memloop-tenant",
    USER_HEADER,
    AGENT_HEADER,
    "idempotency-key",
)
"""No list of several values (RFC 9110, section 5.3)."""


def refuse_repeated(headers: Headers) -> None:
    """Raise InvalidRequest when one of these headers comes twice."""
    if len(set(headers)) == len(headers):
        return
    for name in _SINGLE:
        if len(headers.getlist(name)) > 1:
            raise InvalidRequest(f"The header {name} may come only once.", param=name, code="repeated_header")
