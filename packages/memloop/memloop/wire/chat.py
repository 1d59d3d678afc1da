"""Chat completions as OpenAI's API gives them, plus our one field ``memory``.

Unknown fields are kept on every model, so that what an engine adds reaches the client.

Some messages no user wrote. Chat front ends ask the chat's model for titles, tags, follow-ups and the like, as chats
with the same user: each has a fixed beginning, and those of Open WebUI also quote the chat, because a user's own text
may begin like them. Coding agents put texts into the user's messages: Claude Code wraps them in ``system-reminder``;
Codex sends messages of its own with the surroundings, the repository's instructions and the state of a turn, each in a
tag.

Source: OpenAI API reference, "Chat Completions".
"""

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, JsonValue

from memloop.wire.base import Integral, OpenWire, Wire
from memloop.wire.fields import Name, whole_name
from memloop.wire.memory import Usage
from memloop.wire.memory_events import MemoryEvent

Json: TypeAlias = dict[str, JsonValue]

EARLIER_THINKING: Final = "reasoning_content"
"""The field of an earlier assistant message that holds its thinking."""
ANSWERED_THINKING: Final = ("reasoning", "reasoning_content")
"""The fields of an answer that may hold its thinking: the first is vLLM's, the second that of others."""
THINKING_SWITCH: Final = "chat_template_kwargs"
RESPONSE_FORMAT: Final = "response_format"
LIMIT_FIELDS: Final = frozenset({"max_tokens", "max_completion_tokens"})


def thinking_in(answer: Json) -> str:
    """Return the thinking of an answer's message or of a piece of one; an engine that sends both fields repeats it."""
    return next((value for name in ANSWERED_THINKING if isinstance(value := answer.get(name), str) and value), "")


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


class TokenCounts(OpenWire):
    """The ``usage`` of an answer, as an engine counts it; one that does not count sends null."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


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


_OPEN_WEBUI: Final = "### Task:"
_QUOTES_CHAT: Final = re.compile(r"^#+ (?:Chat History|Context):\s*<chat_history>", re.MULTILINE)
_BEGINNINGS: Final = (
    # Open WebUI: an emoji for a message, one answer of several models', the choice of tools
    "Your task is to reflect the speaker's likely facial expression through a fitting emoji.",
    "You have been provided with a set of responses from various models to the latest user query:",
    "Available Tools: ",
    # LibreChat: titles, with and without structured output
    "Provide a concise, 5-word-or-less title for the conversation",
    "Please generate a concise, 5-word-or-less title for the conversation",
    "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title",
    # LobeChat: titles and summaries of a long chat
    "You are a professional conversation summarizer. Generate a concise title",
    "You are an assistant skilled at conversations. You need to summarize the user's conversation into a title",
    "You're an assistant who's good at extracting key takeaways from conversations and summarizing them.",
    # NextChat: the same, as the last message of the chat
    "Please generate a four to five word title summarizing our conversation",
    "Summarize the discussion briefly in 200 words or less to use as a prompt for future context.",
)


def is_task(messages: Sequence[SentMessage]) -> bool:
    """Return whether a front end asks for itself: by its system message or by the chat's last message."""
    said = [message for message in messages if message.role in ("system", "developer")]
    texts = [message.text().lstrip() for message in (*said, messages[-1])]
    return any(
        _QUOTES_CHAT.search(text) is not None if text.startswith(_OPEN_WEBUI) else text.startswith(_BEGINNINGS)
        for text in texts
    )


_TAGS: Final = (
    "system-reminder",
    "environment_context",
    "user_instructions",
    "INSTRUCTIONS",
    "skill",
    "turn_aborted",
    "subagent_notification",
)
_HEADING: Final = "# AGENTS.md instructions"


def is_of_agent(text: str) -> bool:
    """Return whether a coding agent wrote the text: it is one tag, or the instructions of a repository."""
    stripped = text.strip()
    if not stripped.startswith(("<", "#")):
        return False
    if stripped.startswith(_HEADING):
        return True
    return any(stripped.startswith(f"<{tag}>") and stripped.endswith(f"</{tag}>") for tag in _TAGS)
