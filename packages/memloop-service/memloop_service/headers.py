"""Headers that name the caller or whose data it asks for, of which a request has at most one each.

Parses ``If-Match``, which names the version of a memory that a request edits.
"""

import re
from typing import Final

from starlette.datastructures import Headers

from memloop.wire.errors import InvalidRequest

IF_MATCH: Final = r'^(\*|(W/)?"?[0-9]{1,18}"?)$'
"""A version: ``3``, ``"3"`` or ``W/"3"``; ``*`` matches any."""


def version_in(if_match: str) -> int | None:
    """Return the version, or None for any. Raises InvalidRequest for a header of another form."""
    if not re.match(IF_MATCH, if_match):
        raise InvalidRequest("If-Match takes a version number", param="If-Match")
    return None if if_match == "*" else int(if_match.removeprefix("W/").strip('"'))


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
