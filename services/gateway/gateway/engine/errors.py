"""Maps the engine's failures to errors for the client."""

from collections.abc import Mapping
from typing import Final

from memloop.wire.chat import Json
from memloop.wire.errors import (
    CONTEXT_LENGTH_EXCEEDED,
    MODEL_NOT_FOUND,
    EngineError,
    ErrorBody,
    ErrorEnvelope,
    MemloopError,
)
from memloop_clients import RawResponse
from memloop_service.http import object_in, parsed_object

_OPENAIS: Final = frozenset({CONTEXT_LENGTH_EXCEEDED, MODEL_NOT_FOUND})
"""Codes of OpenAI's own: such a fault has OpenAI's type too, whatever the engine calls it."""
_RETRY_AFTER_S: Final = 1.0
_EVENT_STREAM = "text/event-stream"


class Refused(EngineError):
    """The engine rejected the client's request; its own message reaches the client."""

    def __init__(self, error: EngineError, words: Mapping[str, object]) -> None:
        own: Mapping[str, object] = {} if error.code in _OPENAIS else words
        super().__init__(
            _text(words.get("message")) or error.message,
            engine_status=error.engine_status,
            param=_text(words.get("param")),
            code=_text(own.get("code")) or error.code,
            retry_after_s=error.retry_after_s,
        )
        self._type = _text(own.get("type")) or "invalid_request_error"

    def envelope(self) -> ErrorEnvelope:
        """Return the OpenAI-shaped body, with the engine's own error type unless OpenAI has a code for the fault."""
        return ErrorEnvelope(error=ErrorBody(message=self.message, type=self._type, param=self.param, code=self.code))


def answer_in(raw: bytes) -> Json:
    """Parse an answer's whole body. Raises EngineError unless it is a JSON object with fields."""
    answer = parsed_object(raw)
    if not answer:
        raise EngineError("the engine's answer is not a JSON object")
    return answer


async def refusal(upstream: RawResponse) -> MemloopError:
    """Return the client's error for a response that is no answer.

    A 4xx is the client's fault and keeps the engine's message; any other status is an engine failure worth a retry.
    """
    error = await upstream.error()
    if isinstance(error, EngineError) and error.http_status < 500:
        raw = await upstream.read()
        fields = parsed_object(raw)
        return Refused(error, object_in(fields.get("error")) or fields)
    return with_retry_after(error)


def with_retry_after(error: MemloopError) -> MemloopError:
    """Set ``Retry-After`` on an error that is not the client's own (a 4xx), and return it."""
    if error.http_status >= 500 and error.retry_after_s is None:
        error.retry_after_s = _RETRY_AFTER_S
    return error


def is_event_stream(upstream: RawResponse) -> bool:
    """Return whether the engine answers with server-sent events."""
    return upstream.headers.get("Content-Type", "").startswith(_EVENT_STREAM)


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int) else None
