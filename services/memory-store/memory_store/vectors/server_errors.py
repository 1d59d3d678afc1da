"""Translates the errors of a Qdrant server and its client into ours. A raw body stands in the log alone."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of failure: our error for it."""

    error: type[DependencyError]
    code: str
    message: str

    def made(self, retry_after_s: float = _RETRY_AFTER_S) -> DependencyError:
        """The error; with a time to come back where a retry may help."""
        helps = issubclass(self.error, Unavailable | Timeout)
        return self.error(self.message, code=self.code, retry_after_s=retry_after_s if helps else None)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The responses of a kind: by status, and by words of the body where the status alone does not decide."""

    statuses: frozenset[int]
    words: tuple[str, ...]
    kind: _Kind

    def fits(self, status: int, body: str) -> bool:
        return status in self.statuses and (not self.words or any(word in body for word in self.words))


_UNREACHABLE = _Kind(Unavailable, "qdrant_unreachable", "Qdrant cannot be reached.")
_TIMEOUT = _Kind(Timeout, "qdrant_timeout", "Qdrant did not answer in time.")
_NO_LIVE_COPY = _Kind(Unavailable, "qdrant_no_live_copy", "A shard of Qdrant has no live copy.")
_INCONSISTENT = _Kind(Unavailable, "qdrant_consistency", "Too few copies of a shard of Qdrant took the operation.")
_RATE_LIMITED = _Kind(Unavailable, "qdrant_rate_limited", "Qdrant's rate limit is reached.")
_BUSY = _Kind(Unavailable, "qdrant_unavailable", "Qdrant is temporarily unavailable.")
_LOCKED = _Kind(Unavailable, "qdrant_locked", "Qdrant is locked against writes.")
_FULL = _Kind(Unavailable, "qdrant_storage_full", "Qdrant's storage is full.")
_KEY_REFUSED = _Kind(DependencyError, "qdrant_key_refused", "Qdrant refused the memory store's key.")
_STRICT_MODE = _Kind(DependencyError, "qdrant_strict_mode", "Qdrant's strict mode refused the request.")
_NO_COLLECTION = _Kind(DependencyError, "qdrant_no_collection", "Qdrant does not have the memory store's collection.")
_REFUSED = _Kind(DependencyError, "qdrant_refused", "Qdrant refused the request.")
_FAILED = _Kind(DependencyError, "qdrant_failed", "Qdrant failed.")
_UNREADABLE = _Kind(DependencyError, "qdrant_unreadable", "Qdrant's response could not be read.")

_RULES = (
    _Rule(frozenset({429}), (), _RATE_LIMITED),
    _Rule(frozenset({403}), ("Storage locked",), _LOCKED),
    _Rule(frozenset({401, 403}), (), _KEY_REFUSED),
    _Rule(frozenset({404}), ("Collection",), _NO_COLLECTION),
    _Rule(frozenset({408, 504}), (), _TIMEOUT),
    _Rule(frozenset({400}), ("Help: ",), _STRICT_MODE),
    _Rule(frozenset({507}), (), _FULL),
    _Rule(frozenset({500, 503}), ("active replica", "read operations failed", "Shard temporarily"), _NO_LIVE_COPY),
    _Rule(frozenset({500, 503}), ("onsistency", "Failed to apply operation", "Pre-condition failure"), _INCONSISTENT),
    _Rule(frozenset({503}), ("onnect",), _UNREACHABLE),
    _Rule(frozenset({502, 503}), (), _BUSY),
    _Rule(frozenset(range(500, 600)), (), _FAILED),
)
"""The first that fits decides. Source: the status codes and messages of Qdrant's REST API."""

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
        raise _of_response(error.status_code or 0, error.content.decode(errors="replace")).made() from None
    except AioRpcError as error:
        raise _of_response(_STATUSES.get(error.code(), 500), error.details() or "").made() from None
    except ResourceExhaustedResponse as error:
        _log.warning("Qdrant's rate limit is reached: %s", error.message[:_LOGGED_CHARS])
        raise _RATE_LIMITED.made(error.retry_after_s) from None
    except QdrantException as error:
        _log.warning("Qdrant's rate limit is reached: %s", str(error)[:_LOGGED_CHARS])
        raise _RATE_LIMITED.made() from None
    except ResponseHandlingException as error:
        # The cause that a traceback may show: a validation error quotes the response
        raise _of_transport(error.source).made() from (
            None if isinstance(error.source, ValidationError) else error.source
        )


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


def _of_response(status: int, body: str) -> _Kind:
    kind = next((rule.kind for rule in _RULES if rule.fits(status, body)), _REFUSED)
    # A refusal may quote a value of the request, which may be a user's text.
    level = logging.DEBUG if kind is _REFUSED else logging.WARNING
    _log.warning("Qdrant answered %d: %s", status, kind.code)
    _log.log(level, "Qdrant's response: %s", body[:_LOGGED_CHARS])
    return kind


def _of_transport(source: Exception) -> _Kind:
    if isinstance(source, ValidationError):
        _log.warning("Qdrant's response could not be read: %d errors", source.error_count())
        return _UNREADABLE
    late = isinstance(source, TimeoutException) and not isinstance(source, ConnectTimeout)
    _log.debug("Qdrant did not answer: %r", source)
    return _TIMEOUT if late else _UNREACHABLE


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
