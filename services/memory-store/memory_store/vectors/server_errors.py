"""Translates the errors of a Qdrant server and its client into ours. A raw body stands in the log alone."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Container, Generator, Mapping
from http import HTTPStatus
from typing import Final, TypeVar

from grpc import StatusCode
from grpc.aio import AioRpcError
from httpx import ConnectTimeout, TimeoutException
from pydantic import ValidationError
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from memloop.wire.errors import DependencyError, Timeout, Unavailable

_RETRY_AFTER_S = 2.0
_LOGGED_CHARS = 500
_log = logging.getLogger(__name__)


_ERRORS: Final[Mapping[str, tuple[type[DependencyError], str]]] = {
    "qdrant_unreachable": (Unavailable, "Qdrant cannot be reached."),
    "qdrant_timeout": (Timeout, "Qdrant did not answer in time."),
    "qdrant_no_live_copy": (Unavailable, "A shard of Qdrant has no live copy."),
    "qdrant_consistency": (Unavailable, "Too few copies of a shard of Qdrant took the operation."),
    "qdrant_rate_limited": (Unavailable, "Qdrant's rate limit is reached."),
    "qdrant_unavailable": (Unavailable, "Qdrant is temporarily unavailable."),
    "qdrant_locked": (Unavailable, "Qdrant is locked against writes."),
    "qdrant_storage_full": (Unavailable, "Qdrant's storage is full."),
    "qdrant_key_refused": (DependencyError, "Qdrant refused the memory store's key."),
    "qdrant_strict_mode": (DependencyError, "Qdrant's strict mode refused the request."),
    "qdrant_no_collection": (DependencyError, "Qdrant does not have the memory store's collection."),
    "qdrant_refused": (DependencyError, "Qdrant refused the request."),
    "qdrant_failed": (DependencyError, "Qdrant failed."),
    "qdrant_unreadable": (DependencyError, "Qdrant's response could not be read."),
}
_RULES: Final[tuple[tuple[Container[int], tuple[str, ...], str], ...]] = (
    ({429}, (), "qdrant_rate_limited"),
    ({403}, ("Storage locked",), "qdrant_locked"),
    ({401, 403}, (), "qdrant_key_refused"),
    ({404}, ("Collection",), "qdrant_no_collection"),
    ({408, 504}, (), "qdrant_timeout"),
    ({400}, ("Help: ",), "qdrant_strict_mode"),
    ({507}, (), "qdrant_storage_full"),
    ({500, 503}, ("active replica", "read operations failed", "Shard temporarily"), "qdrant_no_live_copy"),
    ({500, 503}, ("onsistency", "Failed to apply operation", "Pre-condition failure"), "qdrant_consistency"),
    ({503}, ("onnect",), "qdrant_unreachable"),
    ({502, 503}, (), "qdrant_unavailable"),
    (range(500, 600), (), "qdrant_failed"),
)
"""Statuses, words of the body where the status alone does not decide, and the code; the first that fits decides.

Source: the status codes and messages of Qdrant's REST API.
"""


def _error(code: str, retry_after_s: float = _RETRY_AFTER_S) -> DependencyError:
    """Return the error of a code; with a time to come back where a retry may help."""
    kind, message = _ERRORS[code]
    return kind(message, code=code, retry_after_s=retry_after_s if issubclass(kind, Unavailable | Timeout) else None)


_STATUSES = {
    StatusCode.INVALID_ARGUMENT: 400,
    StatusCode.FAILED_PRECONDITION: 400,
    StatusCode.UNAUTHENTICATED: 401,
    StatusCode.PERMISSION_DENIED: 403,
    StatusCode.NOT_FOUND: 404,
    StatusCode.RESOURCE_EXHAUSTED: 429,
    StatusCode.UNAVAILABLE: 503,
    StatusCode.DEADLINE_EXCEEDED: 504,
}
"""The status of REST that a status of gRPC stands for; any other is a failure. The messages are the same."""


@contextlib.contextmanager
def translated() -> Generator[None]:
    """The client's errors as ours, by kind: 503 with ``Retry-After`` where a retry helps, 504 when late, else 502."""
    try:
        yield
    except UnexpectedResponse as error:
        raise _of_response(error.status_code or 0, error.content.decode(errors="replace")) from None
    except AioRpcError as error:
        raise _of_response(_STATUSES.get(error.code(), 500), error.details() or "") from None
    except ResourceExhaustedResponse as error:
        _log.warning("Qdrant's rate limit is reached: %s", error.message[:_LOGGED_CHARS])
        raise _error("qdrant_rate_limited", error.retry_after_s) from None
    except QdrantException as error:
        _log.warning("Qdrant's rate limit is reached: %s", str(error)[:_LOGGED_CHARS])
        raise _error("qdrant_rate_limited") from None
    except ResponseHandlingException as error:
        # The cause that a traceback may show: a validation error quotes the response
        raise _of_transport(error.source) from (None if isinstance(error.source, ValidationError) else error.source)


@contextlib.contextmanager
def accept_existing() -> Generator[None]:
    """Ignore the error for a thing that another store has just made; Qdrant refuses a second shard key with 400."""
    try:
        yield
    except UnexpectedResponse as error:
        if error.status_code != HTTPStatus.CONFLICT and b"already exists" not in error.content:
            raise


def alias_taken(name: str) -> Unavailable:
    """The error when another store has put another collection in service meanwhile; opening again decides."""
    message = f"Another store put the collection {name} in service meanwhile."
    return Unavailable(message, code="qdrant_alias_taken", retry_after_s=_RETRY_AFTER_S)


def _of_response(status: int, body: str) -> DependencyError:
    fitting = (
        code
        for statuses, words, code in _RULES
        if status in statuses and (not words or any(word in body for word in words))
    )
    code = next(fitting, "qdrant_refused")
    # A refusal may quote a value of the request, which may be a user's text.
    level = logging.DEBUG if code == "qdrant_refused" else logging.WARNING
    _log.warning("Qdrant answered %d: %s", status, code)
    _log.log(level, "Qdrant's response: %s", body[:_LOGGED_CHARS])
    return _error(code)


def _of_transport(source: Exception) -> DependencyError:
    if isinstance(source, ValidationError):
        _log.warning("Qdrant's response could not be read: %d errors", source.error_count())
        return _error("qdrant_unreadable")
    late = isinstance(source, TimeoutException) and not isinstance(source, ConnectTimeout)
    _log.debug("Qdrant did not answer: %r", source)
    return _error("qdrant_timeout" if late else "qdrant_unreachable")


_PATIENCE_S: Final = 30.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_PASSING: Final = {
    "qdrant_consistency",
    "qdrant_failed",
    "qdrant_no_collection",
    "qdrant_no_live_copy",
    "qdrant_rate_limited",
    "qdrant_timeout",
    "qdrant_unavailable",
}
"""The errors that another store's steps may cause. A server that cannot be reached is waited for elsewhere."""

T = TypeVar("T")


async def repeated(step: Callable[[], Awaitable[T]], *, patience_s: float = _PATIENCE_S) -> T:
    """Return what the step returns, repeated for so long while it fails in a way that may pass.

    Raises its last error, as ours.
    """
    deadline = time.monotonic() + patience_s
    longest_s = _FIRST_PAUSE_S
    while True:
        try:
            with translated():
                return await step()
        except DependencyError as error:
            pause_s = longest_s * random.uniform(0.5, 1.0)
            if error.code not in _PASSING or time.monotonic() + pause_s > deadline:
                raise
            _log.info("a step of the set-up is repeated in %.2f s: %s", pause_s, error.message)
        await asyncio.sleep(pause_s)
        longest_s = min(2 * longest_s, _LONGEST_PAUSE_S)


async def made(step: Callable[[], Awaitable[object]]) -> None:
    """Repeat a step that makes something; another store may make it first."""

    async def accepting() -> None:
        with accept_existing():
            await step()

    await repeated(accepting)
