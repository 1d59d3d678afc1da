"""Describes the requests that each public chat endpoint accepts, as data: one row per endpoint, with its source.

Loops write one canonical request, vLLM's form of OpenAI's chat completions. ``Dialect.fit`` converts it to the form
that an endpoint accepts. Nothing else in the project depends on the kind of endpoint.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, cast, get_args

from pydantic import JsonValue
from yarl import URL

from memloop.ports import ReplyFormat
from memloop.templates import ANY_ROLES, ChatTemplate, fitted
from memloop.wire.chat import Json
from memloop_clients.windows import Ask, ServedWindow, lmstudio_window, ollama_window, props_window

DialectName: TypeAlias = Literal[
    "auto", "openai", "azure", "anthropic", "gemini", "ollama", "llama.cpp", "lmstudio", "openrouter", "vllm", "sglang"
]
DIALECT_NAMES: Final[tuple[DialectName, ...]] = get_args(DialectName)
LimitField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
FormatType: TypeAlias = Literal["json_schema", "json_object"]

EARLIER_THINKING: Final = "reasoning_content"
"""The field of an earlier assistant message that holds its thinking."""
ANSWERED_THINKING: Final = ("reasoning", "reasoning_content")
"""The fields of an answer that may hold its thinking: the first is vLLM's, the second that of others."""
THINKING_SWITCH: Final = "chat_template_kwargs"
RESPONSE_FORMAT: Final = "response_format"
LIMIT_FIELDS: Final = frozenset({"max_tokens", "max_completion_tokens"})
_ENGINE_FIELDS: Final = frozenset({THINKING_SWITCH, EARLIER_THINKING, "top_k", "min_p", "repetition_penalty"})
"""What vLLM, SGLang and llama.cpp add to OpenAI's request."""


def thinking_in(answer: Json) -> str:
    """Return the thinking of an answer's message or of a piece of one; an engine that sends both fields repeats it."""
    return next((value for name in ANSWERED_THINKING if isinstance(value := answer.get(name), str) and value), "")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The request fields and values that an endpoint, or one of its models, accepts.

    ``leaves_out``: fields that it rejects, of the request or (``reasoning_content``) of an earlier message.
    ``tool_choices``: the values of ``tool_choice`` that it accepts; ``named`` stands for an object that names a tool.
    ``effort``: the ``reasoning_effort`` of a request without thinking; ``tools_effort``: of one with tools. None omits
    the field. ``reasoning_room``: tokens added to the limit for thinking that the endpoint counts but does not return.
    ``of_reasoning``: the dialect of its reasoning models, which reject a temperature. ``template``: the roles of a chat
    that the model's template takes. ``formats``: the types of ``response_format`` that it accepts, the strictest first.
    """

    name: str
    limit_field: LimitField = "max_tokens"
    leaves_out: frozenset[str] = frozenset()
    tool_choices: frozenset[str] = frozenset({"none", "auto", "required", "named"})
    effort: str | None = None
    tools_effort: str | None = None
    reasoning_room: int = 0
    of_reasoning: "Dialect | None" = None
    template: ChatTemplate = ANY_ROLES
    formats: tuple[FormatType, ...] = ("json_schema", "json_object")

    def fit(self, body: Json) -> Json:
        """Convert the canonical request to this endpoint's form."""
        sent: Json = {
            name: value
            for name, value in body.items()
            if name not in self.leaves_out and name not in LIMIT_FIELDS and name != RESPONSE_FORMAT
        }
        limit = next((body[name] for name in LIMIT_FIELDS if name in body), None)
        if isinstance(limit, int):
            sent[self.limit_field] = limit + self.reasoning_room
        sent |= self._effort(body)
        if "tool_choice" in sent:
            choice = sent["tool_choice"]
            if (choice if isinstance(choice, str) else "named") not in self.tool_choices:
                sent["tool_choice"] = "required" if "required" in self.tool_choices else "auto"
        messages = messages_of(body)
        if EARLIER_THINKING in self.leaves_out:
            messages = [
                {name: value for name, value in message.items() if name != EARLIER_THINKING} for message in messages
            ]
        if (asked := format_of(body)) is not None and self.formats:
            words, schema = _parted(asked)
            sent[RESPONSE_FORMAT] = schema if "json_schema" in self.formats else {"type": self.formats[0]}
            if words and messages and isinstance(said := messages[-1].get("content"), str):
                messages = [*messages[:-1], {**messages[-1], "content": f"{said}\n\n{words}"}]
        if "messages" in body:
            taken = messages if self.template == ANY_ROLES else fitted(messages, self.template)
            sent["messages"] = list[JsonValue](taken)
        return sent

    def refusing(self, name: str, *, message: str) -> "Dialect":
        """Return the dialect without the fields that a refusal names."""
        if name in LIMIT_FIELDS:
            other: LimitField = "max_tokens" if self.limit_field == "max_completion_tokens" else "max_completion_tokens"
            return replace(self, limit_field=other)
        if name in {"temperature", "top_p"} and self.of_reasoning is not None:
            return replace(self.of_reasoning, limit_field=self.limit_field)
        if name == "tool_choice":
            return replace(self, tool_choices=frozenset({"none", "auto"}))
        if name == "reasoning_effort" and "'none'" in message and self.tools_effort != "none":
            return replace(self, tools_effort="none")
        return replace(self, leaves_out=self.leaves_out | {name})

    def without_format(self) -> "Dialect":
        """Return the dialect that asks for the next type of ``response_format``, or for none."""
        return replace(self, formats=self.formats[1:])

    def _effort(self, body: Json) -> Json:
        if "reasoning_effort" in body or "reasoning_effort" in self.leaves_out:
            return {}
        switch = cast(object, body.get(THINKING_SWITCH))
        thinks = isinstance(switch, dict) and cast(Json, switch).get("enable_thinking") is True
        effort = self.tools_effort if body.get("tools") else None if thinks else self.effort
        return {"reasoning_effort": effort} if effort is not None else {}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A kind of endpoint: how to recognise it, how to talk to it.

    ``hosts`` are names, or endings that begin with a dot. ``owner`` is ``owned_by`` in its list of models; ``probe`` a
    path beside the base path, and a field of its answer. ``models`` are patterns of model ids with a dialect of their
    own. ``api_version`` goes to base URLs that name an Azure deployment. ``window`` reads a model's window where its
    list of models lacks it.
    """

    dialect: Dialect
    hosts: tuple[str, ...] = ()
    owner: str | None = None
    probe: tuple[str, str] | None = None
    models: tuple[tuple[re.Pattern[str], Dialect], ...] = ()
    key_header: Literal["Authorization", "api-key"] = "Authorization"
    api_version: str | None = None
    window: Callable[[str, Ask], Awaitable[ServedWindow]] | None = None

    def dialect_of(self, model: str) -> Dialect:
        """Return the dialect of one of its models."""
        return next((dialect for pattern, dialect in self.models if pattern.search(model)), self.dialect)

    def at(self, host: str) -> bool:
        """Return whether the host certainly belongs to this kind."""
        return any(host == name or (name.startswith(".") and host.endswith(name)) for name in self.hosts)

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the header that carries the key."""
        if api_key is None:
            return {}
        return {self.key_header: api_key if self.key_header == "api-key" else f"Bearer {api_key}"}

    def base_url(self, url: str) -> str:
        """Return the base URL; for an Azure deployment with its API version."""
        base = URL(url)
        if self.api_version is None or "deployments" not in base.parts or "api-version" in base.query:
            return url
        return str(base.update_query({"api-version": self.api_version}))


_OPENAI_REASONING = Dialect(
    "openai",
    limit_field="max_completion_tokens",
    leaves_out=_ENGINE_FIELDS | {"temperature", "top_p", "logprobs", "top_logprobs", "parallel_tool_calls"},
    effort="low",
    reasoning_room=4096,
)
"""https://platform.openai.com/docs/guides/reasoning and https://learn.microsoft.com/azure/foundry/openai/how-to/reasoning
("Not supported": temperature, top_p, the penalties, logprobs, max_tokens). ``low`` is the least effort that every
reasoning model takes; ``max_completion_tokens`` counts hidden reasoning."""
_OPENAI = Dialect(
    "openai", limit_field="max_completion_tokens", leaves_out=_ENGINE_FIELDS, of_reasoning=_OPENAI_REASONING
)
"""https://platform.openai.com/docs/api-reference/chat/create: ``max_tokens`` is deprecated, unknown fields are 400."""
_AZURE_REASONING = replace(_OPENAI_REASONING, name="azure")
_REASONING_IDS: Final = re.compile(r"^(o[1-9]|gpt-5(?!.*-chat))")

_DEPLOYMENT: Final = "/openai/deployments/"

ANY: Final = Endpoint(Dialect("any"))
"""An endpoint that nothing identifies: everything is sent, and refusals are learned from."""

ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "openai": Endpoint(
        _OPENAI,
        hosts=("api.openai.com", ".api.openai.com"),
        models=((_REASONING_IDS, _OPENAI_REASONING),),
    ),
    # https://learn.microsoft.com/azure/ai-services/openai/reference: the model id is the deployment's name, which
    # a user chooses; 2024-10-21 is the newest API version of deployments that is generally available.
    "azure": Endpoint(
        replace(_OPENAI, name="azure", of_reasoning=_AZURE_REASONING),
        hosts=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
        models=((_REASONING_IDS, _AZURE_REASONING),),
        key_header="api-key",
        api_version="2024-10-21",
    ),
    # https://docs.anthropic.com/en/api/openai-sdk: response_format, logprobs and seed are ignored. The Messages API,
    # which it stands on, refuses temperature beside top_p from Claude 4.1 on, and fields that it does not have.
    "anthropic": Endpoint(
        Dialect("anthropic", leaves_out=_ENGINE_FIELDS | {"top_p", "seed", "logprobs", "top_logprobs"}, formats=()),
        hosts=("api.anthropic.com",),
    ),
    # https://ai.google.dev/gemini-api/docs/openai: reasoning_effort maps to a thinking budget; 2.5 Pro and 3 cannot
    # stop thinking. Unknown fields (seed, penalties) are "Cannot find field".
    "gemini": Endpoint(
        Dialect(
            "gemini",
            leaves_out=_ENGINE_FIELDS | {"seed", "logprobs", "top_logprobs"},
            effort="low",
            reasoning_room=4096,
        ),
        hosts=("generativelanguage.googleapis.com",),
    ),
    # https://openrouter.ai/docs/api/reference/parameters: fields that a provider lacks are dropped there.
    "openrouter": Endpoint(
        Dialect("openrouter", leaves_out=frozenset({THINKING_SWITCH, EARLIER_THINKING})), hosts=("openrouter.ai",)
    ),
    # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
    "vllm": Endpoint(Dialect("vllm"), owner="vllm", probe=("version", "version")),
    # https://docs.sglang.io/basic_usage/openai_api_completions.html and native_api.html
    "sglang": Endpoint(Dialect("sglang"), owner="sglang", probe=("get_model_info", "model_path")),
    # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md (tools want --jinja)
    "llama.cpp": Endpoint(
        Dialect("llama.cpp"), owner="llamacpp", probe=("props", "default_generation_settings"), window=props_window
    ),
    # https://docs.ollama.com/api/openai-compatibility: other fields are ignored; "none" stops the thinking.
    "ollama": Endpoint(
        Dialect("ollama", leaves_out=_ENGINE_FIELDS, effort="none"),
        hosts=("ollama.com",),
        owner="library",
        probe=("api/version", "version"),
        window=ollama_window,
    ),
    # https://lmstudio.ai/docs/developer/openai-compat/chat-completions, .../tools: tool_choice is a word, and
    # .../structured-output: "'response_format.type' must be 'json_schema' or 'text'".
    "lmstudio": Endpoint(
        Dialect(
            "lmstudio",
            leaves_out=frozenset({THINKING_SWITCH, EARLIER_THINKING}),
            tool_choices=frozenset({"none", "auto", "required"}),
            formats=("json_schema",),
        ),
        owner="organization_owner",
        window=lmstudio_window,
    ),
}
"""In the order in which probes are tried: SGLang also serves Ollama's paths."""


def endpoint_at(url: str, choice: DialectName = "auto") -> Endpoint | None:
    """Return the chosen kind of endpoint, or for ``auto`` the one of the host; None when the host is unknown.

    A deployment's path is Azure's at any host: companies put it behind gateways of their own.
    """
    if choice != "auto":
        return ENDPOINTS[choice]
    if _DEPLOYMENT in URL(url).path:
        return ENDPOINTS["azure"]
    host = URL(url).host or ""
    return next((endpoint for endpoint in ENDPOINTS.values() if endpoint.at(host)), None)


def messages_of(body: Json) -> list[Json]:
    """Return the messages of a request."""
    messages = body.get("messages")
    return [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []


def response_format(reply: ReplyFormat) -> Json:
    """Return OpenAI's ``response_format`` of a reply; its ``description`` holds the words that ask for it."""
    held: Json = {"name": reply.name, "strict": True, "schema": reply.schema}
    return {"type": "json_schema", "json_schema": {**held, "description": reply.words} if reply.words else held}


def format_of(body: Json) -> Json | None:
    """Return the ``response_format`` of a request."""
    asked = body.get(RESPONSE_FORMAT)
    return asked if isinstance(asked, dict) else None


def _parted(asked: Json) -> tuple[str, Json]:
    """Return the words that ask for the JSON, and the format without them: not every engine has a description."""
    held = asked.get("json_schema")
    if not isinstance(held, dict) or not isinstance(words := held.get("description"), str):
        return "", asked
    return words, {**asked, "json_schema": {name: value for name, value in held.items() if name != "description"}}
