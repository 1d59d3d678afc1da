"""The engine: any endpoint that speaks OpenAI's chat completions (vLLM, SGLang, OpenAI, Azure OpenAI)."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Self, cast

import orjson
from pydantic import JsonValue, ValidationError
from yarl import URL

from memloop.clients.http import Http, HttpClient, RawResponse, Timeouts, parse_json, retry_after
from memloop.ports import Completion, Prompt
from memloop.wire.base import OpenWire
from memloop.wire.chat import ChatMessage, FunctionCall, Json, ToolCall
from memloop.wire.errors import EngineError, MemloopError, Timeout, Unavailable
from memloop.wire.memory import Usage

_BROKEN_OFF = frozenset({"abort", "error"})
"""Finish reasons of a reply that is not the model's: half a memory would overwrite a whole one."""
_AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_AZURE_API_VERSION = "2024-10-21"
_MESSAGE_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an endpoint accepts beyond, or other than, the common ground.

    ``template_kwargs``: the top-level field ``chat_template_kwargs``, and ``reasoning_content`` in earlier turns.
    ``limit_field``: ``max_tokens``, or ``max_completion_tokens`` for OpenAI's reasoning models.
    """

    template_kwargs: bool = True
    limit_field: str = "max_tokens"


_TIMEOUTS = Timeouts()
_DIALECT = Dialect()


class EngineBusy(Unavailable):
    """The engine answered 503: it is there, and takes no work now."""


class EngineClient(HttpClient):
    """A ChatModel behind HTTP, and the raw calls that a gateway passes through.

    ``base_url`` ends where ``/chat/completions`` begins. An Azure OpenAI base URL, of a deployment or of its v1 API,
    gets Azure's ``api-key`` header and, for a deployment, an ``api-version``.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str,
        api_key: str | None = None,
        timeouts: Timeouts = _TIMEOUTS,
        dialect: Dialect = _DIALECT,
    ) -> None:
        super().__init__(
            Http(
                with_api_version(base_url),
                peer="engine",
                error_of=engine_error,
                headers=auth_headers(base_url, api_key),
                timeouts=timeouts,
            )
        )
        self._model = model
        self._dialect = dialect

    def of_model(self, model: str) -> "ServedChatModel":
        """The same endpoint under another model id."""
        return ServedChatModel(self, model)

    async def complete(self, prompt: Prompt) -> Completion:
        """The default model's reply to a prompt. Raises EngineError, Unavailable or Timeout."""
        return await self.ask(prompt, model=self._model)

    async def ask(self, prompt: Prompt, *, model: str) -> Completion:
        """A model's reply to a prompt. Raises as ``complete`` does."""
        body = request_body(prompt, model=model, dialect=self._dialect)
        return read_completion(await self.post_json("chat/completions", body))

    def stream_raw(
        self, body: bytes | Json, *, path: str = "chat/completions"
    ) -> AbstractAsyncContextManager[RawResponse]:
        """An open response to a POST, whatever its status. Leaving the context early aborts the engine's request."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        return self._http.open("POST", path, body=raw)

    async def send_raw(self, body: bytes, *, path: str) -> RawResponse:
        """An open response to a POST, whatever its status, that the caller closes."""
        return await self._http.send("POST", path, body=body)

    async def post_json(self, path: str, body: Json) -> Json:
        """A call under the base URL. Raises EngineError, Unavailable or Timeout."""
        return _object(await self._http.json("POST", path, body=body))

    async def get_json(self, path: str) -> Json:
        """A read under the base URL, such as ``models``. Raises as ``post_json`` does."""
        return _object(await self._http.json("GET", path))

    async def check(self) -> None:
        """Raise unless the engine answers: a readiness check."""
        await self.get_json("models")


class ServedChatModel:
    """A ChatModel: an engine, bound to one of its models."""

    def __init__(self, engine: EngineClient, model: str) -> None:
        self._engine = engine
        self._model = model

    async def complete(self, prompt: Prompt) -> Completion:
        """The model's reply. Raises as ``EngineClient.complete`` does."""
        return await self._engine.ask(prompt, model=self._model)


def request_body(prompt: Prompt, *, model: str, dialect: Dialect) -> Json:
    """The prompt as OpenAI's request."""
    body: Json = {
        "model": model,
        "messages": [_message(message, dialect) for message in prompt.messages],
        "temperature": prompt.sampling.temperature,
        "top_p": prompt.sampling.top_p,
        dialect.limit_field: prompt.sampling.max_tokens,
    }
    if prompt.tools:
        body |= {"tools": list(prompt.tools), "tool_choice": prompt.tool_choice}
    if dialect.template_kwargs:
        body["chat_template_kwargs"] = {"enable_thinking": prompt.thinking}
    return body


def read_completion(body: Json) -> Completion:
    """OpenAI's response as a reply. Raises EngineError when it has not that shape, or is a reply that broke off."""
    try:
        response = _Response.model_validate(body)
        choice = response.choices[0]
    except (ValidationError, IndexError) as error:
        raise EngineError("the engine's answer is no chat completion") from error
    if choice.finish_reason in _BROKEN_OFF:
        raise EngineError(f"the engine broke off its reply ({choice.finish_reason})")
    return Completion(
        content=choice.message.content or "",
        finish_reason=choice.finish_reason or "",
        reasoning=choice.message.reasoning or choice.message.reasoning_content or "",
        tool_calls=tuple(call.to_wire() for call in choice.message.tool_calls or ()),
        usage=_usage(response.usage),
    )


def engine_error(status: int, raw: bytes, headers: Mapping[str, str]) -> MemloopError:
    """What the engine's refusal means to us."""
    fault = _Fault.of(raw)
    message = f"the engine answered {status}: {fault.message[:_MESSAGE_CHARS]}"
    wait_s = retry_after(headers)
    if status == 503:
        return EngineBusy(message, retry_after_s=wait_s)
    if status == 504:
        return Timeout(message)
    return EngineError(message, engine_status=status, param=fault.param, code=fault.code, retry_after_s=wait_s)


class _Function(OpenWire):
    name: str
    arguments: str | Json | None = None


class _Call(OpenWire):
    id: str | None = None
    function: _Function

    def to_wire(self) -> ToolCall:
        given = self.function.arguments
        arguments = given if isinstance(given, str) else orjson.dumps(given or {}).decode()
        return ToolCall(id=self.id or "", function=FunctionCall(name=self.function.name, arguments=arguments))


class _Message(OpenWire):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[_Call, ...] | None = None


class _Choice(OpenWire):
    message: _Message
    finish_reason: str | None = None


class _Tokens(OpenWire):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Response(OpenWire):
    choices: tuple[_Choice, ...]
    usage: _Tokens | None = None


class _Fault(OpenWire):
    """The part of an error body that we pass on: OpenAI's envelope, vLLM's older flat form, or any text."""

    message: str
    param: str | None = None
    code: str | None = None

    @classmethod
    def of(cls, raw: bytes) -> Self:
        text = raw.decode("utf-8", "replace")
        try:
            value: object = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return cls(message=text)
        fields = cast(dict[str, object], value) if isinstance(value, dict) else {}
        inner = fields.get("error")
        fields = cast(dict[str, object], inner) if isinstance(inner, dict) else fields
        message, param, code = fields.get("message"), fields.get("param"), fields.get("code")
        return cls(
            message=message if isinstance(message, str) else text,
            param=param if isinstance(param, str) else None,
            code=code if isinstance(code, str) else None,
        )


def _message(message: ChatMessage, dialect: Dialect) -> Json:
    hidden = None if dialect.template_kwargs else {"reasoning_content"}
    return cast(Json, message.model_dump(mode="json", exclude_none=True, exclude=hidden))


def _usage(tokens: _Tokens | None) -> Usage:
    if tokens is None:
        return Usage(llm_calls=1)
    return Usage(
        input_tokens=tokens.prompt_tokens or 0,
        output_tokens=tokens.completion_tokens or 0,
        llm_calls=1,
    )


def _object(raw: bytes) -> Json:
    value: JsonValue = parse_json(raw, "engine")
    if not isinstance(value, dict):
        raise EngineError("the engine's answer is no JSON object")
    return value


def _is_azure(url: URL) -> bool:
    return (url.host or "").endswith(_AZURE_HOSTS)


def auth_headers(base_url: str, api_key: str | None) -> dict[str, str]:
    """The key as the endpoint wants it: Azure's own header, or a bearer token."""
    if api_key is None:
        return {}
    return {"api-key": api_key} if _is_azure(URL(base_url)) else {"Authorization": f"Bearer {api_key}"}


def with_api_version(base_url: str) -> str:
    """The base URL; one of an Azure deployment must name an API version."""
    url = URL(base_url)
    if not _is_azure(url) or "deployments" not in url.parts or "api-version" in url.query:
        return base_url
    return str(url.update_query({"api-version": _AZURE_API_VERSION}))
