"""Calls the configured engines in order, and turns their failures into errors for the client.

Each engine's client has a circuit breaker for every replica. A request falls through to the next engine only if the
previous one cannot have begun it: its circuit is open, the connection failed, or it answered 503. A request that lost
its connection or timed out may have broken the engine, so it is not sent to another one. If the last engine refuses the
connection too, client requests are retried once after a pause with jitter; the client has received nothing yet. Such
retries are limited to a tenth of all requests, after the first ten, so that they never double the load on a recovering
engine.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from memloop.ports import ChatModel, Completion, Prompt
from memloop.templates import ROLES_REFUSED, ChatTemplate
from memloop.wire.chat import Json
from memloop.wire.errors import (
    CONTEXT_LENGTH_EXCEEDED,
    MODEL_NOT_FOUND,
    ConnectRefused,
    DependencyError,
    EngineError,
    ErrorBody,
    ErrorEnvelope,
    MemloopError,
    Unreachable,
)
from memloop_clients import CircuitOpen, Dialect, EngineBusy, EngineClient, RawResponse, ServedWindow
from memloop_clients.engine import CHAT_PATH
from memloop_service.http import object_in, parsed_object

_PAUSE_S: Final = (0.05, 0.25)
_REFUSES_WORK: Final = 503
_MOST_RETRIES: Final = 10.0
_RETRIES_PER_CALL: Final = 0.1
_CHECK_S: Final = 3.0
Answer = TypeVar("Answer")


class RetryBudget:
    """Limits retries: each call earns a tenth of one."""

    def __init__(self) -> None:
        self._left = _MOST_RETRIES

    def earn(self) -> None:
        """Add the share of one call."""
        self._left = min(_MOST_RETRIES, self._left + _RETRIES_PER_CALL)

    def spend(self) -> bool:
        """Take one retry if the budget has one."""
        if self._left < 1:
            return False
        self._left -= 1
        return True


@dataclass(frozen=True, slots=True)
class Engines:
    """A ChatModel and the raw pass-through calls. All engines serve the same models under the same ids."""

    engines: Sequence[EngineClient]
    model: str = ""
    budget: RetryBudget = field(default_factory=RetryBudget)
    on_fallback: Callable[[], object] = lambda: None

    def of_model(self, model: str) -> "Engines":
        """Return the same engines for another model."""
        return replace(self, model=model)

    def as_model(self) -> ChatModel:
        """Return what a loop calls: these engines, or the only one, behind which there is no other to ask."""
        return self if len(self.engines) > 1 else self.engines[0].of_model(self.model)

    async def send(self, body: bytes, *, path: str) -> RawResponse:
        """Send a POST; return the open response of any status, which the caller closes. Raises Unavailable, Timeout.

        A chat whose roles the model's chat template refuses is sent again in roles that it takes.
        """
        self.budget.earn()
        try:
            upstream = await self._first(lambda engine: engine.send_raw(body, path=path))
        except ConnectRefused:
            if not self.budget.spend():
                raise
            await asyncio.sleep(random.uniform(*_PAUSE_S))
            upstream = await self._first(lambda engine: engine.send_raw(body, path=path))
        if path == CHAT_PATH and upstream.status in ROLES_REFUSED:
            return await self._first(lambda engine: engine.in_other_roles(body, upstream))
        return upstream

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the model's reply. Raises EngineError, Unavailable, Timeout; the caller decides about retries."""
        return await self._first(lambda engine: engine.ask(prompt, model=self.model))

    async def window(self) -> ServedWindow | None:
        """Return what the first engine that answers states of the model's window; None where none does."""
        try:
            return await self._first(lambda engine: engine.window(self.model))
        except DependencyError:
            return None

    def describe(self, template: ChatTemplate) -> None:
        """Take the roles of the model's template that the launcher of the first engine has found."""
        self.engines[0].describe(self.model, template)

    async def dialect(self) -> Dialect:
        """Return the dialect that the first engine speaks, as known so far."""
        return await self.engines[0].dialect(self.model)

    async def get_json(self, path: str) -> Json:
        """Read a JSON resource, such as ``models``. Raises as ``complete`` does."""
        return await self._first(lambda engine: engine.get_json(path))

    async def check(self) -> None:
        """Raise Unreachable or CircuitOpen unless one engine answers, with any status: a readiness check."""
        failures: list[MemloopError] = []
        for engine in self.engines:
            try:
                async with asyncio.timeout(_CHECK_S):
                    return await engine.check()
            except (CircuitOpen, Unreachable) as error:
                failures.append(error)
            except TimeoutError:
                failures.append(Unreachable("the engine does not answer"))
            except MemloopError:
                return None
        raise failures[0]

    async def _first(self, ask: Callable[[EngineClient], Awaitable[Answer]]) -> Answer:
        for engine in self.engines[:-1]:
            try:
                answer = await ask(engine)
            except (CircuitOpen, Unreachable, EngineBusy):
                pass
            else:
                if not isinstance(answer, RawResponse) or answer.status != _REFUSES_WORK:
                    return answer
                answer.close()
            self.on_fallback()
        return await ask(self.engines[-1])


_OPENAIS: Final = frozenset({CONTEXT_LENGTH_EXCEEDED, MODEL_NOT_FOUND})
"""Codes of OpenAI's own: such a fault has OpenAI's type too, whatever the engine calls it."""
_RETRY_AFTER_S: Final = 1.0


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


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int) else None
