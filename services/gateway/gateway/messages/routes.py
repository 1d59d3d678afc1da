"""``POST /v1/messages`` and its token count: Anthropic's Messages API, answered by any engine of chat completions.

Errors are ``{"type": "error", "error": {"type", "message"}, "request_id"}``. ``details`` adds our code and parameter,
where Anthropic's clients look for an ``error_code``. Source: Anthropic's API reference, "Errors".
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal

from fastapi import APIRouter, Request, Response

from gateway.access import AllowanceDep, PrincipalDep, estimate_tokens, needs, takes
from gateway.chat import AnswerForm, ChatDep, answer_chat, asked_chat, prompt_tokens
from gateway.engine import Meter
from gateway.messages.answers import MessageAnswer, MessageStream, TokenCount, message_of
from gateway.messages.requests import THREAD_UNSUPPORTED, CountTokens, CreateMessage
from gateway.messages.translation import prompt_of, translated
from memloop.wire.base import Wire, request_id
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, MemloopError, Overloaded
from memloop_clients.refusals import Overflow, overflow_of
from memloop_service.errors import ApiStyle
from memloop_service.http import json_response, read_as, read_with, streams

_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}


class ErrorDetails(Wire):
    """The cause, for programs."""

    error_code: str | None = None
    param: str | None = None
    unsupported: tuple[str, ...] | None = None
    """What a thread does not go together with, where that is the fault."""


class ErrorObject(Wire):
    """The broad category, and words for people."""

    type: str
    message: str
    details: ErrorDetails


class ErrorResponse(Wire):
    """The body of every failed answer."""

    type: Literal["error"] = "error"
    error: ErrorObject
    request_id: str | None = None


ERRORS: Final[dict[int | str, dict[str, Any]]] = {"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}}
"""The failures that the routes document."""


def status_of(error: MemloopError) -> int:
    """Return the status: a body that does not validate is 400 in this API."""
    return 400 if error.http_status == 422 else error.http_status


def body_of_error(error: MemloopError) -> Mapping[str, object]:
    """Return the body of an error."""
    unsupported = ("thread",) if error.code == THREAD_UNSUPPORTED else None
    details = ErrorDetails(error_code=error.code, param=error.param, unsupported=unsupported)
    status = status_of(error)
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    kind = "overloaded_error" if isinstance(error, Overloaded) else kind
    found = ErrorObject(type=kind, message=_message_of(error), details=details)
    return ErrorResponse(error=found, request_id=request_id.get() or None).model_dump(exclude_none=True)


def _message_of(error: MemloopError) -> str:
    """Return the message; for a request beyond the window in Anthropic's words, upon which clients shorten theirs."""
    if error.code != CONTEXT_LENGTH_EXCEEDED:
        return error.message
    match overflow_of(error.message):
        case Overflow(int(given), _, int(window)) if given > window:
            return f"prompt is too long: {given} tokens > {window} maximum"
        case Overflow(int(given), int(answer), int(window)):
            sizes = f"{given} + {answer} > {window}"
            limit = f"input length and `max_tokens` exceed context limit: {sizes}"
            return f"{limit}, decrease input length or `max_tokens` and try again"
        case _:
            return f"prompt is too long: {error.message}"


ANTHROPIC: Final = ApiStyle(body_of_error, status_of, ("request-id", "x-request-id"))


PATH = "/v1/messages"
COUNT_PATH = "/v1/messages/count_tokens"
_CHAT = needs("chat", ignores_unknown=True)

router = APIRouter(tags=["messages"], responses=ERRORS)


@router.post(PATH, response_model=None, responses=streams(MessageAnswer), **takes(CreateMessage, _CHAT))
async def create_message(request: Request, chat: ChatDep, principal: PrincipalDep, allowance: AllowanceDep) -> Response:
    """Answer a conversation. ``memory`` controls recall and writes, as in chat completions."""
    meter = Meter(chat.backend.metrics, PATH, "chat", allowance)
    with meter.ours():
        body, asked = await read_as(request, CreateMessage)
        model = chat.backend.models.named(asked.model)
        translation = await read_with(request, body, lambda _: translated(asked, model.dialect))
        known = asked_chat(request, chat, principal, translation.body, translation.fields)
        meter.goes_to(known.model)
        tokens = await estimate_tokens(translation.body.fields["messages"], model.splitter) if asked.stream else 0
    form = AnswerForm(
        whole=lambda answer: message_of(answer, asked),
        streamed=lambda relay: lambda upstream, out: relay(upstream, MessageStream(out, meter, asked, tokens=tokens)),
        place_of=translation.places.__getitem__,
    )
    return await answer_chat(request, chat, allowance, meter, known, form)


@router.post(COUNT_PATH, response_model=None, responses={200: {"model": TokenCount}}, **takes(CountTokens, _CHAT))
async def count_message_tokens(request: Request, chat: ChatDep, allowance: AllowanceDep) -> Response:
    """Count the tokens of a prompt by the model's tokenizer. Recalled memories and pictures are not counted."""
    _, asked = await read_as(request, CountTokens)
    model = chat.backend.models.named(asked.model)
    fields, sent = prompt_of(asked)
    await allowance.admit()
    counted = await asyncio.to_thread(prompt_tokens, fields, sent, model.splitter)
    return json_response(TokenCount(input_tokens=counted))
