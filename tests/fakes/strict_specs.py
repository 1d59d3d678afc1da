"""What each public endpoint takes and refuses, one row each, from its API document."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from memloop_clients import DialectName
from tests.fakes import strict_shapes as shape
from tests.fakes.recorded_answers import Recorded
from tests.fakes.strict_shapes import Body, Refused

Rule: TypeAlias = Callable[[Body], Refused | None]

_COMMON = frozenset(
    {
        *("model", "messages", "temperature", "top_p", "max_tokens", "stream", "stream_options", "stop", "n", "user"),
        *("tools", "tool_choice", "parallel_tool_calls", "response_format", "frequency_penalty", "presence_penalty"),
    }
)
OPENAI_FIELDS = _COMMON | {
    *("max_completion_tokens", "reasoning_effort", "seed", "logprobs", "top_logprobs", "logit_bias", "metadata"),
    *("store", "service_tier", "prediction", "modalities", "audio", "safety_identifier", "prompt_cache_key"),
    *("verbosity", "web_search_options", "functions", "function_call"),
}
"""https://platform.openai.com/docs/api-reference/chat/create"""
_ANTHROPIC_FIELDS = OPENAI_FIELDS | {"thinking"}
_GEMINI_FIELDS = (_COMMON - {"frequency_penalty", "presence_penalty"}) | {
    "max_completion_tokens",
    "reasoning_effort",
    "extra_body",
}


@dataclass(frozen=True, slots=True)
class Spec:
    """One endpoint. ``fields`` None: unknown fields are ignored. ``rules`` are asked in order.

    ``headers`` are wanted of every request; ``query`` on the chat's URL. ``probes`` are what it answers beside its base
    path, ``owner`` its ``owned_by``. ``too_long`` and ``limited`` are its errors for a long prompt and for too many.
    """

    name: str
    dialect: DialectName
    too_long: Refused
    limited: Refused
    model: str = "m"
    base: str = "/v1"
    fields: frozenset[str] | None = None
    unknown: Callable[[Sequence[str]], Refused] = shape.unrecognized
    rules: tuple[Rule, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    denied: Refused = field(default_factory=lambda: shape.openai(401, "Incorrect API key provided: k."))
    missing: Refused = field(default_factory=lambda: shape.openai(404, "Not Found"))
    owner: str | None = None
    probes: Mapping[str, Body] = field(default_factory=dict[str, Body])
    certain: bool = True
    """Whether ``auto`` can tell it from its host or a probe; the host cannot be tried on loopback."""
    recorded: Recorded | None = None
    """The program whose recorded shapes its answers have; None for OpenAI's."""
    signs_calls: bool = False
    """Whether its tool calls carry a signature that must come back."""


def no_max_tokens(body: Body) -> Refused | None:
    """OpenAI's o-series and GPT-5 family."""
    refused = "max_tokens" in body
    return shape.unsupported_parameter("max_tokens", instead="max_completion_tokens") if refused else None


def fixed(name: str) -> Rule:
    """The field has one value on reasoning models."""

    def rule(body: Body) -> Refused | None:
        return shape.unsupported_value(name, body[name]) if body.get(name, 1) != 1 else None

    return rule


def no_parameter(name: str) -> Rule:
    """The field is not taken by reasoning models."""

    def rule(body: Body) -> Refused | None:
        return shape.unsupported_parameter(name) if name in body else None

    return rule


def effort_not_with_tools(body: Body) -> Refused | None:
    """GPT-5.6: tools on chat completions want ``reasoning_effort: "none"``, said or not."""
    if not body.get("tools") or body.get("reasoning_effort") == "none":
        return None
    message = (
        f"Function tools with reasoning_effort are not supported for {body['model']} in /v1/chat/completions. To use "
        "function tools, use /v1/responses or set reasoning_effort to 'none'."
    )
    return shape.openai(400, message, param="reasoning_effort")


def effort_or_tools(body: Body) -> Refused | None:
    """GPT-5.4: a given effort and tools exclude one another."""
    if not body.get("tools") or "reasoning_effort" not in body:
        return None
    message = (
        f"Function tools with reasoning_effort are not supported for {body['model']} in /v1/chat/completions. Please "
        "use /v1/responses instead."
    )
    return shape.openai(400, message, param="reasoning_effort")


def one_of_two(body: Body) -> Refused | None:
    """Claude 4.1 to 4.6."""
    both = "temperature" in body and "top_p" in body
    message = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    return shape.anthropic(400, message) if both else None


def no_sampling(body: Body) -> Refused | None:
    """Claude 4.7 and later."""
    found = next((name for name in ("temperature", "top_p", "top_k") if name in body), None)
    return shape.anthropic(400, f"`{found}` is deprecated for this model.") if found else None


def no_choice_while_thinking(body: Body) -> Refused | None:
    """Claude whose thinking is on: a tool cannot be forced."""
    forced = body.get("tool_choice") == "required"
    message = "Thinking may not be enabled when tool_choice forces tool use."
    return shape.anthropic(400, message) if forced else None


def signed_calls(body: Body) -> Refused | None:
    """Gemini 3: an earlier call comes back with its signature."""
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    unsigned = [call for call in calls if not _signature(call)]
    message = "Function call is missing a thought_signature in functionCall parts."
    return shape.google(400, message) if unsigned else None


def _signature(call: Body) -> object:
    extra: Body = call.get("extra_content") or {}
    google: Body = extra.get("google") or {}
    return google.get("thought_signature")


def no_forced_tool(body: Body) -> Refused | None:
    """OpenRouter: no provider of the model takes ``required``."""
    if body.get("tool_choice") in (None, "auto", "none"):
        return None
    return shape.openrouter(
        404,
        "No endpoints found that support the provided 'tool_choice' value. To learn more about provider routing, visit:"
        " https://openrouter.ai/docs/guides/routing/provider-selection",
    )


def choice_is_text(body: Body) -> Refused | None:
    """LM Studio: a named tool is refused."""
    choice = body.get("tool_choice", "auto")
    message = "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
    return None if isinstance(choice, str) else shape.lmstudio(400, message)


WINDOW = 8192
_LLAMA_CPP, _VLLM = Recorded("llama.cpp"), Recorded("vllm")
_OPENAI_TOO_LONG = shape.openai(
    400,
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 90000 tokens. Please reduce"
    " the length of the messages.",
    param="messages",
    code="context_length_exceeded",
)
_OPENAI_LIMITED = shape.openai(429, "Rate limit reached for m on requests per min (RPM).", code="rate_limit_exceeded")
_REASONING = (no_max_tokens, fixed("temperature"), no_parameter("top_p"), no_parameter("parallel_tool_calls"))
_ANTHROPIC_TOO_LONG = shape.anthropic(400, "prompt is too long: 210000 tokens > 200000 maximum")
_ANTHROPIC_LIMITED = shape.anthropic(429, "Number of request tokens has exceeded your per-minute rate limit")
_BEARER = {"Authorization": "Bearer k"}
_AZURE_DENIED = shape.azure(
    401,
    "401",
    "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an"
    " active subscription and use a correct regional API endpoint for your resource.",
)
_AZURE_MISSING = shape.azure(
    404,
    "DeploymentNotFound",
    "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes,"
    " please wait a moment and try again.",
)
_AZURE_LIMITED = shape.azure(
    429, "429", "Requests to the ChatCompletions_Create Operation have exceeded token rate limit. Retry after 1 second."
)


def _openai(name: str, *rules: Rule, model: str = "m", certain: bool = True) -> Spec:
    return Spec(
        name,
        "openai",
        too_long=_OPENAI_TOO_LONG,
        limited=_OPENAI_LIMITED,
        model=model,
        fields=OPENAI_FIELDS,
        rules=rules,
        headers=_BEARER,
        certain=certain,
    )


def _azure(name: str, base: str, *rules: Rule, query: Mapping[str, str], fields: frozenset[str]) -> Spec:
    return Spec(
        name,
        "azure",
        too_long=_OPENAI_TOO_LONG,
        limited=_AZURE_LIMITED,
        base=base,
        fields=fields,
        rules=rules,
        headers={"api-key": "k"},
        query=query,
        denied=_AZURE_DENIED,
        missing=_AZURE_MISSING,
        certain="/deployments/" in base,  # on loopback nothing else shows that the key goes into a header of its own
    )


def _anthropic(name: str, *rules: Rule) -> Spec:
    return Spec(
        name,
        "anthropic",
        too_long=_ANTHROPIC_TOO_LONG,
        limited=_ANTHROPIC_LIMITED,
        fields=_ANTHROPIC_FIELDS,
        unknown=shape.anthropic_extra,
        rules=rules,
        headers=_BEARER,
        denied=shape.anthropic(401, "invalid x-api-key"),
    )


def _gemini(name: str, *rules: Rule, signs: bool = False) -> Spec:
    return Spec(
        name,
        "gemini",
        too_long=shape.google(400, "The input token count (1200000) exceeds the maximum number of tokens allowed."),
        limited=shape.google(429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"),
        base="/v1beta/openai",
        fields=_GEMINI_FIELDS,
        unknown=shape.google_unknown,
        rules=rules,
        headers=_BEARER,
        denied=shape.google(400, "API key not valid. Please pass a valid API key."),
        owner="google",
        signs_calls=signs,
    )


_OLD_AZURE_FIELDS = OPENAI_FIELDS - {"max_completion_tokens", "reasoning_effort", "parallel_tool_calls"}

SPECS: tuple[Spec, ...] = (
    _openai("openai"),
    _openai("openai o-series", *_REASONING, model="o4-mini"),
    _openai("openai gpt-5.4", *_REASONING, effort_or_tools, model="gpt-5.4"),
    _openai("openai gpt-5.6", *_REASONING, effort_not_with_tools, model="gpt-5.6-terra"),
    _azure("azure deployment", "/openai/deployments/m", query={"api-version": "2024-10-21"}, fields=OPENAI_FIELDS),
    _azure(
        "azure deployment, old version",
        "/openai/deployments/m",
        query={"api-version": "2024-06-01"},
        fields=_OLD_AZURE_FIELDS,
    ),
    _azure("azure v1", "/openai/v1", query={}, fields=OPENAI_FIELDS),
    _azure("azure v1, reasoning", "/openai/v1", *_REASONING, query={}, fields=OPENAI_FIELDS),
    _anthropic("anthropic 4.5", one_of_two),
    _anthropic("anthropic 4.7", no_sampling, no_choice_while_thinking),
    _gemini("gemini 2.5"),
    _gemini("gemini 3", signed_calls, signs=True),
    Spec(
        "ollama",
        "ollama",
        too_long=shape.ollama(400, "input length exceeds the context length"),
        limited=shape.ollama(429, "too many requests"),
        owner="library",
        probes={"/api/version": {"version": "0.40.12"}},
    ),
    Spec(
        "llama.cpp",
        "llama.cpp",
        too_long=_LLAMA_CPP.refusal("too long", 9000, WINDOW),
        limited=shape.llama_cpp(429, "too many requests"),
        owner="llamacpp",
        probes={"/props": _LLAMA_CPP.props(WINDOW)},
        recorded=_LLAMA_CPP,
    ),
    Spec(
        "lmstudio",
        "lmstudio",
        too_long=shape.lmstudio(400, "Trying to keep the first 9000 tokens when context overflows."),
        limited=shape.lmstudio(429, "too many requests"),
        rules=(choice_is_text,),
        owner="organization_owner",
    ),
    Spec(
        "openrouter",
        "openrouter",
        too_long=shape.openrouter(400, "This endpoint's maximum context length is 8192 tokens."),
        limited=shape.openrouter(429, "Rate limit exceeded: free-models-per-min."),
        base="/api/v1",
        rules=(no_forced_tool,),
        headers=_BEARER,
        denied=shape.openrouter(401, "No auth credentials found"),
    ),
    Spec(
        "vllm",
        "vllm",
        too_long=_VLLM.refusal("too long", WINDOW, 9000, 9000),
        limited=shape.vllm(429, "too many requests"),
        owner="vllm",
        probes={"/version": {"version": "0.32.0"}},
        recorded=_VLLM,
    ),
    Spec(
        "sglang",
        "sglang",
        too_long=shape.sglang(400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
        limited=shape.sglang(429, "too many requests"),
        owner="sglang",
        probes={"/get_model_info": {"model_path": "m", "is_generation": True}},
    ),
    Spec(
        "another server, strict",
        "auto",
        too_long=shape.openai(413, "the prompt is too long"),
        limited=shape.openai(429, "slow down"),
        fields=_COMMON,
        unknown=shape.fastapi_extra,
    ),
)
