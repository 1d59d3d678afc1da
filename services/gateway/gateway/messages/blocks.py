"""The content blocks of Anthropic's Messages API, as clients send them.

Fields that no model here has are refused. ``cache_control`` is accepted everywhere and has no effect: engines cache
prompts on their own. Source: Anthropic's API reference, "Messages", and the types of its Python SDK.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue

from memloop.wire.base import Wire
from memloop.wire.chat import Json

Flag: TypeAlias = Annotated[bool, Field(strict=True)]


class Block(Wire):
    """What every block may have."""

    cache_control: Json | None = None


class Text(Block):
    """A text."""

    type: Literal["text"]
    text: str
    citations: tuple[JsonValue, ...] | None = None


class Base64(Wire):
    """A file in the request itself."""

    type: Literal["base64"]
    media_type: str
    data: str


class Url(Wire):
    """A file at an address, which the engine fetches."""

    type: Literal["url"]
    url: str


class Uploaded(Wire):
    """A file that was uploaded to Anthropic."""

    type: Literal["file"]
    file_id: str


class PlainText(Wire):
    """A document's text."""

    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: str


class Image(Block):
    """A picture."""

    type: Literal["image"]
    source: Annotated[Base64 | Url | Uploaded, Field(discriminator="type")]
    transformations: Json | None = None


class Parts(Wire):
    """A document's content as blocks."""

    type: Literal["content"]
    content: "str | tuple[Annotated[Text | Image, Field(discriminator='type')], ...]"


class Citations(Wire):
    """Whether the answer shall cite the block."""

    enabled: Flag = False


class Document(Block):
    """A document: a PDF, a text, or blocks."""

    type: Literal["document"]
    source: Annotated[Base64 | Url | Uploaded | PlainText | Parts, Field(discriminator="type")]
    title: str | None = None
    context: str | None = None
    citations: Citations | None = None


class SearchResult(Block):
    """A passage that the client has found."""

    type: Literal["search_result"]
    source: str
    title: str
    content: tuple[Text, ...]
    citations: Citations | None = None


class Thinking(Wire):
    """What the model thought in an earlier step."""

    type: Literal["thinking"]
    thinking: str
    signature: str


class RedactedThinking(Wire):
    """Thinking that only Anthropic can read."""

    type: Literal["redacted_thinking"]
    data: str


class ToolUse(Block):
    """A tool call of the model."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: Json
    caller: Json | None = None
    toolset_name: str | None = None


ResultBlock: TypeAlias = Annotated[Text | Image | Document | SearchResult, Field(discriminator="type")]


class ToolResult(Block):
    """What a tool returned."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: str | tuple[ResultBlock, ...] | None = None
    is_error: Flag | None = None
    toolset_name: str | None = None


UserBlock: TypeAlias = Annotated[Text | Image | Document | SearchResult | ToolResult, Field(discriminator="type")]
AssistantBlock: TypeAlias = Annotated[Text | Thinking | RedactedThinking | ToolUse, Field(discriminator="type")]


class UserMessage(Wire):
    """A message of the user, with the results of tools."""

    role: Literal["user"]
    content: str | tuple[UserBlock, ...]


class AssistantMessage(Wire):
    """A message of the model."""

    role: Literal["assistant"]
    content: str | tuple[AssistantBlock, ...]


class SystemMessage(Wire):
    """Instructions in mid-conversation."""

    role: Literal["system"]
    content: str | tuple[Text, ...]


Message: TypeAlias = Annotated[UserMessage | AssistantMessage | SystemMessage, Field(discriminator="role")]
