"""The kinds of public chat endpoints, as data, and which of them one is: a row per kind, with its source."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

from yarl import URL

from memloop.wire.base import objects_in
from memloop.wire.chat import EARLIER_THINKING, THINKING_SWITCH, Json
from memloop.wire.errors import MemloopError, Timeout, Unavailable
from memloop_clients.dialects import Dialect
from memloop_clients.windows import Ask, Read, ServedWindow, lmstudio_window, ollama_window, props_window

_LOG = logging.getLogger(__name__)
_PROBE_S: Final = 3.0
DialectName: TypeAlias = Literal[
    "auto", "openai", "azure", "anthropic", "gemini", "ollama", "llama.cpp", "lmstudio", "openrouter", "vllm", "sglang"
]
DIALECT_NAMES: Final[tuple[DialectName, ...]] = get_args(DialectName)
_ENGINE_FIELDS: Final = frozenset({THINKING_SWITCH, EARLIER_THINKING, "top_k", "min_p", "repetition_penalty"})
"""What vLLM, SGLang and llama.cpp add to OpenAI's request."""


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


class Recognised:
    """One endpoint, whose kind is known from a setting or its host, or else by a probe before the first call.

    ``below`` reads under the base URL, ``beside`` under the server's root.
    """

    def __init__(self, known: Endpoint | None, *, below: Read, beside: Read) -> None:
        self._known = known
        self._below = below
        self._beside = beside
        self._probing = asyncio.Lock()

    async def dialect_of(self, model: str) -> Dialect | None:
        """Return the dialect of one of its models; None while it is unreachable."""
        endpoint = await self.endpoint()
        return None if endpoint is None else endpoint.dialect_of(model)

    async def endpoint(self) -> Endpoint | None:
        """Return its kind, detected by its list of models or the paths beside it; None while it is unreachable."""
        async with self._probing:
            if self._known is None:
                try:
                    async with asyncio.timeout(_PROBE_S):
                        self._known = await self._recognised()
                except (MemloopError, TimeoutError):
                    return None
                _LOG.info("the engine's dialect is %s", self._known.dialect.name)
            return self._known

    async def _recognised(self) -> Endpoint:
        listing = await _answer(self._below, "models")
        owners = [row.get("owned_by") for row in objects_in(listing.get("data"))]
        for endpoint in ENDPOINTS.values():
            if endpoint.owner is not None and endpoint.owner in owners:
                return endpoint
        for endpoint in ENDPOINTS.values():
            if endpoint.probe is not None:
                path, field = endpoint.probe
                if field in await _answer(self._beside, path):
                    return endpoint
        return ANY


async def _answer(get: Read, path: str) -> Json:
    """Return the answer; empty when the endpoint has no such path. Raises Unavailable, Timeout."""
    try:
        return await get(path)
    except (Unavailable, Timeout):
        raise
    except MemloopError:
        return {}
