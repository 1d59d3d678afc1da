"""The one tree of errors, each with its HTTP status and OpenAI error type.

    MemloopError                500 api_error
    ├── InvalidRequest          400 invalid_request_error
    │   ├── UnknownParameter
    │   ├── Unprocessable       422
    │   ├── TooLarge            413
    │   └── SlowBody            408
    ├── Unauthenticated         401 authentication_error
    ├── Forbidden               403 permission_error
    ├── NotFound                404 not_found_error
    │   └── OtherTenants
    ├── Conflict                409 conflict_error
    │   └── Erased
    ├── Gone                    410 not_found_error
    ├── PreconditionFailed      412 conflict_error
    ├── RateLimited             429 rate_limit_error      (Retry-After)
    ├── NotSupported            501 not_implemented
    ├── Overloaded              503 overloaded_error      (Retry-After)
    └── DependencyError         502 upstream_error
        ├── EngineError             the engine answered with an error (its status is kept when it is a 4xx)
        │   └── ContextTruncated        it read only a part of the prompt
        ├── Unavailable         503 (Retry-After)  the dependency cannot be reached
        │   └── Unreachable         no connection came about in time: nothing was sent
        │       └── ConnectRefused      it was refused at once
        └── Timeout             504

Source of the body's shape: OpenAI API reference, "Errors".
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar, Final

from memloop.wire.base import Wire

CONTEXT_LENGTH_EXCEEDED: Final = "context_length_exceeded"
MODEL_NOT_FOUND: Final = "model_not_found"
"""OpenAI's codes that its clients act upon."""
_SHOWN_CHARS: Final = 128


class ErrorBody(Wire):
    """What stands under ``error`` in every failed answer."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorEnvelope(Wire):
    """``{"error": {...}}``."""

    error: ErrorBody


class MemloopError(Exception):
    """Base of all errors that a client may see."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "api_error"
    default_code: ClassVar[str | None] = "internal_error"

    def __init_subclass__(cls, *, status: int | None = None, kind: str | None = None, code: str | None = None) -> None:
        super().__init_subclass__()
        cls.status, cls.type, cls.default_code = status or cls.status, kind or cls.type, code or cls.default_code

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or self.default_code
        self.retry_after_s = retry_after_s

    @property
    def http_status(self) -> int:
        """The status of the answer; a subclass may decide per instance."""
        return self.status

    def envelope(self) -> ErrorEnvelope:
        """The OpenAI-shaped body."""
        body = ErrorBody(message=self.message, type=self.type, param=self.param, code=self.code)
        return ErrorEnvelope(error=body)


class InvalidRequest(MemloopError, status=400, kind="invalid_request_error", code="invalid_request"):
    """The request is wrong and will stay wrong."""


class UnknownParameter(InvalidRequest, code="unknown_parameter"):
    """A parameter or field that the route does not have. The message names the closest of ``known``.

    ``within`` is the path of the object that has the field, empty for a parameter of the request.
    """

    def __init__(self, name: str, *, known: Iterable[str], within: str = "") -> None:
        shown = (f"{within}.{name}" if within else name)[:_SHOWN_CHARS]
        names = {_alike(one): one for one in sorted(known)}
        close = get_close_matches(_alike(name[:_SHOWN_CHARS]), names, n=1)
        hint = f"Did you mean {names[close[0]]!r}?" if close else f"Known: {', '.join(names.values()) or 'none'}."
        super().__init__(f"Unknown parameter: {shown!r}. {hint}", param=shown)


def _alike(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


class Unprocessable(InvalidRequest, status=422, code="validation_error"):
    """Well-formed JSON whose fields do not validate."""


class TooLarge(InvalidRequest, status=413, code="too_large"):
    """A body or a document over its limit."""


class SlowBody(InvalidRequest, status=408, code="body_timeout"):
    """A body that the client did not send in time."""


class Unauthenticated(MemloopError, status=401, kind="authentication_error", code="invalid_api_key"):
    """No key, or one that is not known."""


class Forbidden(MemloopError, status=403, kind="permission_error", code="forbidden"):
    """A known key without the right to do this."""


class NotFound(MemloopError, status=404, kind="not_found_error", code="not_found"):
    """No such thing, or none that this tenant may see."""


class OtherTenants(NotFound):
    """The resource belongs to another tenant. The client gets a plain 404; the audit log records the attempt."""


class Conflict(MemloopError, status=409, kind="conflict_error", code="conflict"):
    """The state does not allow it: a stale fencing token, a reused idempotency key."""


class Erased(Conflict, code="erased"):
    """The memories of a write were erased before it was done."""

    def __init__(self) -> None:
        super().__init__("These memories were erased while the write was under way.")


class Gone(MemloopError, status=410, kind="not_found_error", code="gone"):
    """It was there, and is kept no longer."""


class PreconditionFailed(MemloopError, status=412, kind="conflict_error", code="precondition_failed"):
    """``If-Match`` names another version."""


class RateLimited(MemloopError, status=429, kind="rate_limit_error", code="rate_limited"):
    """Over a limit; try again after ``retry_after_s`` seconds."""


class NotSupported(MemloopError, status=501, kind="not_implemented", code="not_implemented"):
    """A known route or option that is not served."""


class Overloaded(MemloopError, status=503, kind="overloaded_error", code="overloaded"):
    """The process holds as much work as it may; try again after ``retry_after_s`` seconds."""


class DependencyError(MemloopError, status=502, kind="upstream_error", code="upstream_error"):
    """Something behind us failed."""


class EngineError(DependencyError):
    """The engine refused or broke; a 4xx of the engine is the client's to see, unless it is about our own key."""

    def __init__(
        self,
        message: str,
        *,
        engine_status: int = 502,
        param: str | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, param=param, code=code, retry_after_s=retry_after_s)
        self.engine_status = engine_status

    @property
    def http_status(self) -> int:
        """The engine's own 4xx, else 502; 401 and 403 concern the key that we hold, not the client's."""
        ours = self.engine_status in {401, 403, 407}
        return self.engine_status if 400 <= self.engine_status < 500 and not ours else 502


class UnreadableAnswer(EngineError):
    """The engine answered with an object of another shape, and will so again."""


class ContextTruncated(EngineError, code="context_truncated"):
    """The engine read only a part of the prompt, or has no room for the rest of its reply. The reply is dropped."""


class Unavailable(DependencyError, status=503, code="unavailable"):
    """A dependency cannot be reached; it may be back after ``retry_after_s`` seconds."""


class Unreachable(Unavailable):
    """No connection to the dependency came about; nothing was sent to it."""


class ConnectRefused(Unreachable):
    """The dependency, or the network before it, refused the connection at once."""


class Timeout(DependencyError, status=504, code="timeout"):
    """A dependency did not answer in time."""
