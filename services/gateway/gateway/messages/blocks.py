"""The content blocks of Anthropic's Messages API, as clients send them.

Fields that no model here has are refused. ``cache_control`` is accepted everywhere and has no effect: engines cache
prompts on their own.

Thoughts are signed where the client sees them, and in a block that it only sends back where it does not. Engines whose
models think between tool calls want the thoughts before a call back with it: some refuse the next step without them. A
client that did not ask for thinking gets them as ``redacted_thinking``, which every client of Anthropic's API returns
as it came and shows nowhere (docs/decisions/0157-hidden-thoughts-travel-with-their-calls.md).

Source: Anthropic's API reference, "Messages", and the types of its Python SDK.
"""

import base64
import binascii
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

from pydantic import Discriminator, Field, JsonValue, Tag

from memloop.wire.base import Wire
from memloop.wire.chat import Json
from memloop.wire.fields import MediaUrl

_OURS: Final = "memloop."


def signature_of(checksum: bytes) -> str:
    """Return the signature of thinking from its SHA-256. Clients send it back; nothing verifies it."""
    return base64.b64encode(checksum).decode()


def hidden_block(thought: str) -> Json:
    """Return the block that carries a thought to the next request. It is encoded, not encrypted."""
    encoded = base64.b64encode(thought.encode("utf-8", "surrogatepass")).decode()
    return {"type": "redacted_thinking", "data": _OURS + encoded}


def hidden_thought(data: str) -> str | None:
    """Return the thought of a block of ours; None for another API's, which that API alone can read."""
    if not data.startswith(_OURS):
        return None
    try:
        return base64.b64decode(data.removeprefix(_OURS), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


Flag: TypeAlias = Annotated[bool, Field(strict=True)]


_Blocks = TypeVar("_Blocks")


Content: TypeAlias = Annotated[
    Annotated[str, Tag("text")] | Annotated[_Blocks, Tag("blocks")],
    Discriminator(lambda content: "text" if isinstance(content, str) else "blocks"),
]
"""A text or blocks; an invalid block is named by its place."""


class Block(Wire):
    """What every block may have."""

    cache_control: Json | None = None


class TextParam(Block):
    """A text."""

    type: Literal["text"]
    text: str
    citations: tuple[JsonValue, ...] | None = None


class Base64Source(Wire):
    """A file in the request itself."""

    type: Literal["base64"]
    media_type: str
    data: str


class UrlSource(Wire):
    """A file at an address, which the engine fetches."""

    type: Literal["url"]
    url: MediaUrl


class UploadedSource(Wire):
    """A file that was uploaded to Anthropic."""

    type: Literal["file"]
    file_id: str


class TextSource(Wire):
    """A document's text."""

    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: str


class ImageParam(Block):
    """A picture."""

    type: Literal["image"]
    source: Annotated[Base64Source | UrlSource | UploadedSource, Field(discriminator="type")]
    transformations: Json | None = None


class BlocksSource(Wire):
    """A document's content as blocks."""

    type: Literal["content"]
    content: Content[tuple[Annotated[TextParam | ImageParam, Field(discriminator="type")], ...]]


class CitationsParam(Wire):
    """Whether the answer shall cite the block."""

    enabled: Flag = False


class DocumentParam(Block):
    """A document: a PDF, a text, or blocks."""

    type: Literal["document"]
    source: Annotated[
        Base64Source | UrlSource | UploadedSource | TextSource | BlocksSource, Field(discriminator="type")
    ]
    title: str | None = None
    context: str | None = None
    citations: CitationsParam | None = None


class SearchResultParam(Block):
    """A passage that the client has found."""

    type: Literal["search_result"]
    source: str
    title: str
    content: tuple[TextParam, ...]
    citations: CitationsParam | None = None


class ThinkingParam(Wire):
    """What the model thought. ``signature`` is a checksum."""

    type: Literal["thinking"]
    thinking: str
    signature: str


class RedactedThinkingParam(Wire):
    """Thinking that the client does not see: the gateway's own, or what another API alone can read."""

    type: Literal["redacted_thinking"]
    data: str


class ToolUseParam(Block):
    """A tool call of the model."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: Json
    caller: Json | None = None
    toolset_name: str | None = None


ResultBlock: TypeAlias = Annotated[
    TextParam | ImageParam | DocumentParam | SearchResultParam, Field(discriminator="type")
]


class ToolResultParam(Block):
    """What a tool returned."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: Content[tuple[ResultBlock, ...]] | None = None
    is_error: Flag | None = None
    toolset_name: str | None = None


UserBlock: TypeAlias = Annotated[
    TextParam | ImageParam | DocumentParam | SearchResultParam | ToolResultParam, Field(discriminator="type")
]
AssistantBlock: TypeAlias = Annotated[
    TextParam | ThinkingParam | RedactedThinkingParam | ToolUseParam, Field(discriminator="type")
]


class UserMessage(Wire):
    """A message of the user, with the results of tools."""

    role: Literal["user"]
    content: Content[tuple[UserBlock, ...]]


class AssistantMessage(Wire):
    """A message of the model."""

    role: Literal["assistant"]
    content: Content[tuple[AssistantBlock, ...]]


class SystemMessage(Wire):
    """Instructions in mid-conversation."""

    role: Literal["system"]
    content: Content[tuple[TextParam, ...]]


Message: TypeAlias = Annotated[UserMessage | AssistantMessage | SystemMessage, Field(discriminator="role")]
