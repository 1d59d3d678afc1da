"""A request's headers, found by hash. Starlette's own compare the name with every header's at each look-up."""

from collections.abc import Sequence
from typing import Final, TypeVar, overload

from starlette.datastructures import Headers
from starlette.requests import Request

from memloop.wire.errors import InvalidRequest

HEADERS: Final = "memloop.headers"
"""The scope's key for the headers that the edge has indexed."""
USER_HEADER: Final = "x-memory-user-id"
AGENT_HEADER: Final = "x-memory-agent-id"
_SINGLE: Final = (
    "host",
    "authorization",
    "x-api-key",
    "x-memloop-tenant",
    USER_HEADER,
    AGENT_HEADER,
    "idempotency-key",
)
"""Headers that name the caller, whose data it asks for, or the request: no list of several (RFC 9110, section 5.3)."""
_Default = TypeVar("_Default")


class IndexedHeaders(Headers):
    """The headers of one request, in which the first of a repeated name counts, as in Starlette's."""

    def __init__(self, raw: Sequence[tuple[bytes, bytes]]) -> None:
        super().__init__(raw=[*raw])
        self._first = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(raw)}

    def refuse_repeated(self) -> None:
        """Raise InvalidRequest when a header comes twice that names the caller or whose data it asks for."""
        if len(self._first) == len(self.raw):
            return
        for name in _SINGLE:
            if len(self.getlist(name)) > 1:
                raise InvalidRequest(f"The header {name} may come only once.", param=name, code="repeated_header")

    def __getitem__(self, key: str) -> str:
        """Return the value of the header, whose name may have any case. Raises KeyError."""
        return self._first[key.lower()]

    def __contains__(self, key: object) -> bool:
        """Return whether the request has the header."""
        return isinstance(key, str) and key.lower() in self._first

    @overload
    def get(self, key: str, /) -> str | None: ...
    @overload
    def get(self, key: str, default: str | _Default, /) -> str | _Default: ...
    def get(self, key: str, default: object = None, /) -> object:
        """Return the value of the header, or the default."""
        return self._first.get(key.lower(), default)


class IndexedRequest(Request):
    """A request whose headers the edge has indexed."""

    @property
    def headers(self) -> Headers:
        """Return the headers."""
        return self.scope.get(HEADERS) or super().headers
