"""Chat completions as OpenAI's API gives them, plus our one field ``memory``.

Unknown fields are kept on every model, so that what an engine adds reaches the client.
Source: OpenAI API reference, "Chat Completions".
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias, cast

import orjson
from pydantic import AfterValidator, Field, JsonValue

from memloop.wire.base import Integral, OpenWire, Wire
from memloop.wire.fields import Name, whole_name
from memloop.wire.memory import Usage
from memloop.wire.memory_events import MemoryEvent

Json: TypeAlias = dict[str, JsonValue]


class FunctionCall(OpenWire):
    """A tool's name and its arguments as JSON text, exactly as the model wrote them."""

    name: str
    arguments: str = "{}"


class ToolCall(OpenWire):
    """One tool call of an assistant message."""

    id: str = ""
    type: Literal["function"] = "function"
    function: FunctionCall


class ContentPart(OpenWire):
    """One part of a message's content; only ``text`` parts are read by us."""

    type: str
    text: str | None = None


class SentMessage(OpenWire):
    """One message as a client sends it: what the gateway reads of it."""

    role: str
    content: str | tuple[ContentPart, ...] | None = None
    name: str | None = None

    def text(self) -> str:
        """The message's text, its text parts joined by a newline."""
        if isinstance(self.content, str):
            return self.content
        parts = self.content or ()
        return "\n".join(part.text for part in parts if part.text is not None)


class ChatMessage(SentMessage):
    """One message of a conversation that a loop holds."""

    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = None


class MemoryOptions(Wire):
    """The ``memory`` field of a chat request; see ``docs/api.md``."""

    user_id: Name | None = None
    agent_id: Name | None = None
    run_id: Name | None = None
    mode: Literal["readwrite", "read", "write", "off"] = "readwrite"
    top_k: Annotated[int, Integral] = Field(default=10, ge=1, le=100, strict=True)
    max_tokens: Annotated[int, Integral] = Field(default=1500, ge=1, le=32_768, strict=True)
    long_context: Literal["auto", "off"] = "off"
    sync: bool = Field(default=False, strict=True)
    profile: bool = Field(default=False, strict=True)
    """Also recalls the user's pinned and newest facts, whatever the question: at most half of ``max_tokens``."""


NO_OPTIONS: Final = MemoryOptions()
"""The options of a request without the field ``memory``."""


class StreamOptions(OpenWire):
    """``include_usage`` asks for one last chunk with the usage."""

    include_usage: bool | None = Field(default=None, strict=True)


MetadataKey: TypeAlias = Annotated[str, Field(max_length=64), AfterValidator(whole_name)]
MetadataValue: TypeAlias = Annotated[str, Field(max_length=512)]
Metadata: TypeAlias = Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)]


class ChatRequest(OpenWire):
    """The fields of a chat request that the gateway reads; all others reach the engine untouched."""

    model: str
    messages: tuple[SentMessage, ...] = Field(min_length=1)
    stream: bool | None = Field(default=None, strict=True)
    stream_options: StreamOptions | None = None
    metadata: Metadata | None = None
    memory: MemoryOptions | None = None
    safety_identifier: str | None = None
    user: str | None = None


class PartRead(Wire):
    """A message whose text was read because it did not fit; ``tokens`` of the text."""

    message_index: int
    tokens: int
    chunks: int
    llm_calls: int


class LongContext(Wire):
    """What was read before a chat could be answered, and what that cost."""

    parts: tuple[PartRead, ...]
    usage: Usage


class MemoryUsage(Usage):
    """What memory has cost in one answer: the tokens put into the prompt, and what loops spent before it."""

    recalled_tokens: int = 0


class ChatMemory(Wire):
    """What the gateway adds to a chat answer. The answer's own ``usage`` stays the engine's."""

    retrieved: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    """The writes whose turns were recalled before a decision on them."""
    write_event_id: str | None = None
    write: MemoryEvent | None = None
    """With ``sync``, the write's event when it ended or the wait did."""
    usage: MemoryUsage = MemoryUsage()
    long_context: LongContext | None = None
    error: str | None = None


def parsed_object(raw: bytes) -> Json:
    """Parse the JSON object in the bytes; empty when there is none."""
    try:
        return object_in(orjson.loads(raw))
    except orjson.JSONDecodeError:
        return {}


def object_in(value: object) -> Json:
    """Return the value if it is an object, else an empty one."""
    return cast(Json, value) if isinstance(value, dict) else {}


def objects_in(value: object) -> Sequence[Json]:
    """Return the objects of a list; empty for any other value."""
    return [object_in(part) for part in cast(list[object], value)] if isinstance(value, list) else []
