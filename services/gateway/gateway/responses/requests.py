"""The request of ``POST /v1/responses``, and what of it cannot be served.

A field of the public API that no chat completion can carry is refused by name. A field that the public API does not
have goes to the engine, as in chat, unless it would change what the translation relies on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, get_args

from fastapi import Depends, Query
from pydantic import Field, JsonValue

from gateway.responses.items import Item, UnreadItem, checked, items_of
from gateway.responses.tools import Tool, ToolChoice, read_tools
from memloop.wire.base import A_BOOLEAN, Given, Integral, OpenWire, ShownAs
from memloop.wire.chat import Json, MemoryOptions, Metadata
from memloop.wire.errors import InvalidRequest
from memloop_service.http import validated

LOGPROBS: Final = "message.output_text.logprobs"
RESULTS: Final = "file_search_call.results"
Includable: TypeAlias = Literal[
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "reasoning.encrypted_content",
    "file_search_call.results",
]
_INCLUDABLE: Final = frozenset(get_args(Includable))
"""Image URLs are always there; so is the reasoning, in clear."""
_REFUSED: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("access_programs", "context_management", "image", "moderation", "personality", "prompt")),
    **dict.fromkeys(("n", "modalities", "audio", "web_search_options")),  # a response cannot hold their answers
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "logprobs": "include",
    "functions": "tools",
    "function_call": "tool_choice",
}
"""Fields that are not served; those of chat completions by the field that replaces them."""


class ConversationParam(Given):
    """The conversation that a response continues."""

    id: str


class Format(Given):
    """The form of the answer's text."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str | None = None
    description: str | None = None
    schema_: Json | None = Field(default=None, alias="schema")
    strict: Annotated[bool, Field(strict=True)] | None = None


class TextOptions(Given):
    """``text`` of a request."""

    format: Format = Format()
    verbosity: str | None = None


class ReasoningOptions(Given):
    """``reasoning`` of a request. Engines make no summary: to whoever asks for one, the reasoning is given as one."""

    effort: str | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None

    @property
    def asks_for_summary(self) -> bool:
        """Whether the answer has a summary in the place of the reasoning."""
        return (self.summary or self.generate_summary) is not None


class ResponseStreamOptions(Given):
    """``stream_options`` of a request."""

    include_obfuscation: Annotated[Literal[False], A_BOOLEAN] | None = None


class ResponseRequest(OpenWire):
    """A request for a response. Fields that it does not name go to the engine."""

    model: str
    input: str | list[UnreadItem] = Field(default_factory=list[UnreadItem])
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationParam | None = None
    background: bool | None = Field(default=None, strict=True)
    store: bool | None = Field(default=None, strict=True)
    stream: bool | None = Field(default=None, strict=True)
    tools: list[Annotated[JsonValue, ShownAs(Annotated[Tool, Field(discriminator="type")])]] | None = None
    tool_choice: Annotated[JsonValue, ShownAs(ToolChoice | None)] = None
    parallel_tool_calls: bool | None = Field(default=None, strict=True)
    max_output_tokens: Annotated[int, Field(ge=1, strict=True), Integral] | None = None
    max_tool_calls: Annotated[int, Field(ge=1, strict=True), Integral] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20, strict=True), Integral] | None = None
    stream_options: Annotated[Json, ShownAs(ResponseStreamOptions)] | None = None
    text: Annotated[Json, ShownAs(TextOptions)] | None = None
    reasoning: Annotated[Json, ShownAs(ReasoningOptions)] | None = None
    include: tuple[Annotated[str, ShownAs(Includable)], ...] | None = None
    truncation: Annotated[str, ShownAs(Literal["disabled"])] | None = None
    metadata: Metadata | None = None
    memory: MemoryOptions | None = None
    safety_identifier: str | None = None
    user: str | None = None

    @property
    def stores(self) -> bool:
        """Whether the response is kept, which it is by default."""
        return self.store is not False

    @property
    def conversation_id(self) -> str | None:
        """The conversation that the response continues."""
        return self.conversation.id if isinstance(self.conversation, ConversationParam) else self.conversation

    @property
    def wants_logprobs(self) -> bool:
        """Whether the answer has the probabilities of its tokens."""
        return LOGPROBS in (self.include or ()) or bool(self.top_logprobs)


class CountRequest(ResponseRequest):
    """A request whose tokens are counted: it need not name a model."""

    model: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request whose every field is served, taken apart. ``fields`` are as the client sent them."""

    fields: Json
    request: ResponseRequest
    items: tuple[Item, ...]
    tools: tuple[Tool, ...]
    text: TextOptions
    reasoning: ReasoningOptions


def read_request(fields: Json) -> Asked:
    """Take the request apart.

    Raises InvalidRequest (400), naming the field, for what cannot be served; Unprocessable (422) for what is malformed.
    """
    request = validated(ResponseRequest, fields)
    extra = {name: value for name, value in (request.model_extra or {}).items() if value not in (None, False)}
    for name, ours in _REFUSED.items():
        if name in extra:
            reason = f"a field of chat completions. Use {ours}." if ours else "not supported."
            raise _unserved(name, f"{name} is {reason}")
    check_include(request.include)
    if request.conversation is not None and request.previous_response_id is not None:
        message = "A response continues either previous_response_id or a conversation."
        raise InvalidRequest(message, param="conversation", code="mutually_exclusive_parameters")
    if request.truncation not in (None, "disabled"):
        raise _unserved("truncation", f"truncation: {request.truncation!r} is not supported.", code="unsupported_value")
    if request.stream_options:
        checked(ResponseStreamOptions, request.stream_options, "stream_options")
    text = checked(TextOptions, request.text, "text") if request.text else TextOptions()
    if text.format.type == "json_schema" and (text.format.name is None or text.format.schema_ is None):
        raise _unserved("text.format", "text.format: a json_schema needs name and schema.", code="unsupported_value")
    return Asked(
        fields=fields,
        request=request,
        items=items_of(request.input),
        tools=read_tools(request.tools or ()),
        text=text,
        reasoning=checked(ReasoningOptions, request.reasoning or {}, "reasoning"),
    )


def check_include(include: Annotated[Sequence[str] | None, Query()] = None) -> None:
    """Raise InvalidRequest unless everything that ``include`` names is in a response, if it has it at all."""
    for value in include or ():
        if value not in _INCLUDABLE:
            raise _unserved("include", f"include: {value!r} is not supported.", code="unsupported_value")


INCLUDES: Final = Depends(check_include)


def _unserved(param: str, message: str, *, code: str = "unsupported_parameter") -> InvalidRequest:
    return InvalidRequest(message, param=param, code=code)
