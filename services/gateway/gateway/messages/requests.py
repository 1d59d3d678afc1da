"""The requests of Anthropic's Messages API, with our field ``memory``.

Source: Anthropic's API reference, "Create a Message" and "Count tokens in a Message".
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, JsonValue, Tag, model_validator

from gateway.messages.blocks import Content, Flag, Message, TextParam
from memloop.wire.base import Integral, OpenWire, Wire
from memloop.wire.chat import Json, MemoryOptions
from memloop.wire.errors import InvalidRequest

Count: TypeAlias = Annotated[int, Field(strict=True, ge=1), Integral]
Share: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=1)]

THREAD_UNSUPPORTED: Final = "thread_unsupported_request"
"""Anthropic's code upon which its tool runners send all messages."""
NOT_SERVED: Final = {
    "container": "containers run at Anthropic",
    "mcp_servers": "the gateway connects a model to no MCP server; send the server's tools in tools",
    "fallbacks": "the operator chooses the fallback engines",
    "fallback_credit_token": "there are no credits here",
    "billing_policy": "there is no billing here",
    "compaction": "the gateway does not compact conversations",
    "thread": "conversations are not stored; send all messages",
    "prefill": "chat completions cannot continue an answer",
    "inference_geo": "the operator chooses where the engine runs",
    "user_profile_id": "there are no user profiles",
    "workspace_id": "a key belongs to one tenant",
}
"""Fields of the API that no engine behind chat completions can honour, and why. Null and empty values are accepted."""


class Tool(Wire):
    """A tool that the client runs."""

    type: Literal["custom"] | None = None
    name: str = Field(min_length=1)
    description: str | None = None
    input_schema: Json
    input_examples: tuple[Json, ...] | None = None
    strict: Flag | None = None
    cache_control: Json | None = None
    allowed_callers: tuple[str, ...] | None = None
    defer_loading: Flag | None = None
    eager_input_streaming: Flag | None = None


class AnthropicTool(OpenWire):
    """A tool that Anthropic runs or that only its models know."""

    type: str = Field(json_schema_extra={"not": {"const": "custom"}})


def _kind(tool: Any) -> str:
    kind = tool.get("type") if isinstance(tool, dict) else getattr(tool, "type", None)  # pyright: ignore
    return "custom" if kind is None or kind == "custom" else "anthropic"


AnyTool: TypeAlias = Annotated[
    Annotated[Tool, Tag("custom")] | Annotated[AnthropicTool, Tag("anthropic")], Discriminator(_kind)
]


class ToolChoice(Wire):
    """Which tool the model may or must use."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: Flag | None = None


class ThinkingConfig(Wire):
    """Whether the answer shows the model's thinking. The engine decides how long the model thinks."""

    type: Literal["enabled", "adaptive", "between_tools", "disabled"]
    budget_tokens: Count | None = None
    display: str | None = None


class JsonFormat(Wire):
    """A schema that the answer follows."""

    type: Literal["json_schema"]
    schema_: Json = Field(alias="schema")


class OutputConfig(Wire):
    """The form of the answer, and how much the model thinks about it."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: JsonFormat | None = None


class Edit(OpenWire):
    """One edit of the context."""

    type: str
    keep: JsonValue = "all"


class ContextManagement(Wire):
    """Edits of the context before the model sees it."""

    edits: tuple[Edit, ...] = ()


class MessageMetadata(Wire):
    """``user_id`` names the end user."""

    user_id: str | None = Field(default=None, max_length=256)


class CountTokens(Wire):
    """A request to count the tokens of a prompt."""

    model: str = Field(min_length=1)
    messages: tuple[Message, ...] = Field(min_length=1)
    system: Content[tuple[TextParam, ...]] | None = None
    tools: tuple[AnyTool, ...] | None = None
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    context_management: ContextManagement | None = None
    cache_control: Json | None = None
    speed: Literal["standard"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _served(cls, fields: Json) -> Json:
        for name, reason in NOT_SERVED.items():
            if fields.get(name):
                code = THREAD_UNSUPPORTED if name == "thread" else "not_supported"
                raise InvalidRequest(f"{name} is not supported: {reason}.", param=name, code=code)
        return {name: value for name, value in fields.items() if name not in NOT_SERVED}


class CreateMessage(CountTokens):
    """A request for a message."""

    max_tokens: Count
    stream: Flag | None = None
    stop_sequences: tuple[str, ...] | None = None
    temperature: Share | None = None
    top_p: Share | None = None
    top_k: Count | None = None
    metadata: MessageMetadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    diagnostics: Json | None = None
    memory: MemoryOptions | None = None

    @property
    def shows_thinking(self) -> bool:
        """Whether the answer has thinking blocks: a client that does not ask for thinking expects none."""
        asked = self.thinking
        return asked is not None and asked.type != "disabled" and asked.display != "omitted"
