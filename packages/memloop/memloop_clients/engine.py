"""Calls an engine: an endpoint with a dialect of OpenAI's chat completions (:mod:`memloop_clients.dialects`)."""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final, cast

import orjson
from pydantic import JsonValue, ValidationError
from yarl import URL

from memloop.ports import Completion, Prompt
from memloop.templates import ChatTemplate, fitted, refuses_roles, stricter, teaches
from memloop.wire.base import OpenWire
from memloop.wire.chat import RESPONSE_FORMAT, THINKING_SWITCH, Json, TokenCounts, ToolCall
from memloop.wire.errors import (
    CONTEXT_LENGTH_EXCEEDED,
    MODEL_NOT_FOUND,
    EngineError,
    MemloopError,
    Timeout,
    Unavailable,
    UnreadableAnswer,
)
from memloop.wire.memory import Usage
from memloop_clients.balancing.replica import Balancing
from memloop_clients.dialects import Dialect, Learned, messages_of, response_format
from memloop_clients.endpoints import ANY, DialectName, Recognised, endpoint_at
from memloop_clients.http import Http, parse_json, retry_after
from memloop_clients.refusals import Fault, overflow_of
from memloop_clients.replies import whole_reply
from memloop_clients.transport import RawResponse, Timeouts
from memloop_clients.urls import proxy_for
from memloop_clients.windows import ServedWindow, listed_window

CHAT_PATH: Final = "chat/completions"
_MESSAGE_CHARS = 2_000
_OF_THE_REQUEST: Final = frozenset({400, 413, 422})
_NO_SUCH_MODEL: Final = re.compile(r"model\b.*\b(not exist|not found)", re.IGNORECASE)
_TIMEOUTS = Timeouts()
_WINDOW_S: Final = 5.0


class EngineBusy(Unavailable):
    """The engine answered 503: it runs, and takes no requests now."""


class EngineClient(Http):
    """A ChatModel behind HTTP, and the raw calls that a gateway passes through.

    ``base_url`` ends where ``/chat/completions`` begins. ``dialect`` names the kind of endpoint; ``auto`` recognises it
    by host, by a probe before the first chat, and by its refusals. Raw calls pass through as they are. The proxy that
    the environment names for the URL is read here, once. Raises ValueError for a proxy that is not an ``http://`` one.
    With ``balancing``, requests are spread over the engine's replicas; a hosted endpoint balances by itself.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        api_key: str | None = None,
        timeouts: Timeouts = _TIMEOUTS,
        dialect: DialectName = "auto",
        balancing: Balancing | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        known = endpoint_at(base_url, dialect)
        kind = known or ANY
        if balancing is not None and kind.at(URL(base_url).host or ""):
            balancing = replace(balancing, several=False)
        super().__init__(
            kind.base_url(base_url),
            peer="engine",
            error_of=engine_error,
            headers=kind.headers(api_key),
            timeouts=timeouts,
            proxy_of=proxy_for,
            balancing=balancing,
            tls=tls,
        )
        self._model = model
        self._kind = Recognised(known, below=self.get_json, beside=self._ask_beside)
        self._learned = Learned(self._kind.dialect_of)

    def of_model(self, model: str) -> "ServedChatModel":
        """Return a client of the same endpoint with another default model."""
        return ServedChatModel(self, model)

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the default model's reply to a prompt. Raises EngineError, Unavailable or Timeout."""
        return await self.ask(prompt, model=self._model)

    async def ask(self, prompt: Prompt, *, model: str, seed: int | None = None) -> Completion:
        """Return a model's reply to a prompt. Raises as ``complete`` does.

        Prompts of one affinity go to the same replica, whose cache then holds what they begin with.
        """
        body = request_body(prompt, model=model)
        seeded = body if seed is None else {**body, "seed": seed}
        return read_completion(await self.chat(seeded, affinity=prompt.affinity or None))

    async def chat(self, body: Json, *, affinity: str | None = None) -> Json:
        """Send a canonical request in the endpoint's dialect and return the answer. Raises as ``complete`` does."""

        async def post(spoken: Json) -> Json:
            return _object(await self.json("POST", CHAT_PATH, body=spoken, affinity=affinity))

        return await self._learned.send(body, post)

    async def dialect(self, model: str) -> Dialect:
        """Return a model's dialect as known so far; asks the endpoint before the first chat."""
        return await self._learned.dialect(model)

    async def window(self, model: str) -> ServedWindow | None:
        """Return what the endpoint states of a model's window; None while it does not answer."""
        try:
            async with asyncio.timeout(_WINDOW_S):
                endpoint = await self._kind.endpoint()
                if endpoint is None:
                    return None
                if endpoint.window is not None:
                    return await endpoint.window(model, self._ask_beside)
                return await listed_window(model, self.get_json)
        except EngineError as error:
            return ServedWindow(None) if error.engine_status < 500 else None
        except (MemloopError, TimeoutError):
            return None

    def stream_raw(self, body: bytes | Json, *, path: str = CHAT_PATH) -> AbstractAsyncContextManager[RawResponse]:
        """Open a POST's response, whatever its status. Leaving the context early aborts the engine's request."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        return self.open("POST", path, body=raw)

    def send_raw(self, body: bytes, *, path: str) -> Awaitable[RawResponse]:
        """Open a POST's response, whatever its status; the caller closes it.

        A chat goes in the roles that the model's chat template takes, as far as they are known, else byte for byte.
        """
        if path == CHAT_PATH and self._learned.templates:
            body = in_roles(body, self._learned.template)
        return self.send("POST", path, body=body)

    def describe(self, model: str, template: ChatTemplate) -> None:
        """Take the roles of a model's template that its launcher has found by rendering."""
        self._learned.describe(model, template)

    async def in_other_roles(self, body: bytes, refused: RawResponse) -> RawResponse:
        """Send a refused chat in stricter roles, and remember what they teach; else return the refusal."""
        error = await refused.error()
        if not refuses_roles(status=refused.status, message=error.message):
            return refused
        try:
            fields = _object(body)
        except MemloopError:
            return refused
        model, messages = str(fields.get("model")), messages_of(fields)
        known = self._learned.template(model)
        for template in stricter(known, messages):
            chat = in_roles(body, lambda _, step=template: step)
            upstream = await self.send("POST", CHAT_PATH, body=chat)
            if upstream.succeeded:
                refused.close()
                if teaches(template, known, messages):
                    await self._learned.learn_roles(model, template)
                return upstream
            upstream.close()
        return refused

    async def post_json(self, path: str, body: Json) -> Json:
        """POST under the base URL. Raises EngineError, Unavailable or Timeout."""
        return _object(await self.json("POST", path, body=body))

    async def get_json(self, path: str) -> Json:
        """GET under the base URL, such as ``models``. Raises as ``post_json`` does."""
        return _object(await self.json("GET", path))

    async def check(self) -> None:
        """Raise unless the engine answers: a readiness check."""
        await self.get_json("models")

    async def _ask_beside(self, path: str, body: Json | None = None) -> Json:
        method = "GET" if body is None else "POST"
        return _object(await self.json(method, path, body=body, beside=True))


class ServedChatModel:
    """A ChatModel: an engine, bound to one of its models."""

    def __init__(self, engine: EngineClient, model: str) -> None:
        self._engine = engine
        self._model = model

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the model's reply. Raises as ``EngineClient.complete`` does."""
        return await self._engine.ask(prompt, model=self._model)


def in_roles(body: bytes, template_of: Callable[[str], ChatTemplate]) -> bytes:
    """Return a chat in roles that its model's template takes; the same bytes where it is in such roles already."""
    try:
        fields = _object(body)
    except MemloopError:
        return body  # the engine refuses it in its own words
    messages = messages_of(fields)
    chat = fitted(messages, template_of(str(fields.get("model"))))
    return body if chat == messages else orjson.dumps({**fields, "messages": chat})


def request_body(prompt: Prompt, *, model: str) -> Json:
    """Build the canonical request of a prompt, which a dialect then fits to an endpoint."""
    body: Json = {
        "model": model,
        "messages": [cast(Json, message.model_dump(mode="json", exclude_none=True)) for message in prompt.messages],
        "temperature": prompt.sampling.temperature,
        "top_p": prompt.sampling.top_p,
        "max_tokens": prompt.sampling.max_tokens,
    }
    if prompt.tools:
        body |= {"tools": list(prompt.tools), "tool_choice": prompt.tool_choice}
    elif prompt.reply is not None:
        body[RESPONSE_FORMAT] = response_format(prompt.reply)
    body[THINKING_SWITCH] = {"enable_thinking": prompt.thinking}
    return body


def read_completion(body: Json) -> Completion:
    """Parse a response in the form of any engine.

    Raises UnreadableAnswer for another shape, EngineError for a reply that ended early and for a failure that came
    with status 200.
    """
    try:
        response = _Response.model_validate(whole_reply(body))
        choice = response.choices[0]
    except (ValidationError, IndexError) as error:
        raise UnreadableAnswer("the engine's answer is not a chat completion") from error
    tokens = response.usage or TokenCounts()
    return Completion(
        content=choice.message.content or "",
        finish_reason=choice.finish_reason or "",
        reasoning=choice.message.reasoning or choice.message.reasoning_content or "",
        tool_calls=choice.message.tool_calls or (),
        usage=Usage(input_tokens=tokens.prompt_tokens or 0, output_tokens=tokens.completion_tokens or 0, llm_calls=1),
    )


def engine_error(status: int, raw: bytes, headers: Mapping[str, str]) -> MemloopError:
    """Convert the engine's refusal to an error of ours."""
    fault = Fault.of(raw)
    words = fault.message[:_MESSAGE_CHARS]
    message = f"the engine answered {status}: {words}" if words else f"the engine answered {status}"
    wait_s = retry_after(headers)
    if status == 503:
        return EngineBusy(message, retry_after_s=wait_s)
    if status == 504:
        return Timeout(message)
    code = fault.code  # unless the fault is one that clients of OpenAI's act upon
    if status in _OF_THE_REQUEST and overflow_of(words) is not None:
        code = CONTEXT_LENGTH_EXCEEDED
    elif status == 404 and _NO_SUCH_MODEL.search(words):
        code = MODEL_NOT_FOUND
    return EngineError(message, engine_status=status, param=fault.param, code=code, retry_after_s=wait_s)


class _Message(OpenWire):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None


class _Choice(OpenWire):
    message: _Message
    finish_reason: str | None = None


class _Response(OpenWire):
    choices: tuple[_Choice, ...]
    usage: TokenCounts | None = None


def _object(raw: bytes) -> Json:
    value: JsonValue = parse_json(raw, "engine")
    if not isinstance(value, dict):
        raise EngineError("the engine's answer is not a JSON object")
    return value
