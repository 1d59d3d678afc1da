"""OpenAI's chat requests as the engine takes them: fields, limits, and what becomes of them in a generation."""

import json
from collections.abc import Sequence
from typing import Any, Final, Literal

from openvino_genai import GenerationConfig, StructuredOutputConfig
from pydantic import BaseModel, Field

from memloop.wire.chat import Json
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, InvalidRequest

_MOST_CHOICES: Final = 16
_MOST_STOPS: Final = 16
_ANY_OBJECT: Final = '{"type": "object"}'


class Part(BaseModel):
    """A part of a message's content."""

    type: str
    text: str = ""


class Message(BaseModel):
    """A message of a chat; fields that a template may read stay as they are."""

    role: str
    content: str | list[Part] | None = None

    def rendered(self) -> dict[str, str]:
        """Return the message with a text as its content. Raises InvalidRequest for a picture or a sound."""
        if isinstance(self.content, list):
            other = next((part.type for part in self.content if part.type != "text"), None)
            if other is not None:
                raise InvalidRequest(f"this model reads text alone, not {other}", param="messages")
            return {"role": self.role, "content": "".join(part.text for part in self.content)}
        return {"role": self.role, "content": self.content or ""}


class StreamOptions(BaseModel):
    """``include_usage``: a last chunk has the usage."""

    include_usage: bool = False


class ResponseFormat(BaseModel):
    """``json_schema`` holds a ``schema``."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: dict[str, Any] = Field(default_factory=dict)


class ChatRequest(BaseModel):
    """The fields of a chat that count here. Others that do not change a reply's meaning are not looked at."""

    model: str
    messages: list[Message] = Field(min_length=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float = Field(default=1.0, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=-1)
    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    seed: int | None = None
    stop: str | list[str] | None = None
    n: int = Field(default=1, ge=1, le=_MOST_CHOICES)
    stream: bool = False
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    tools: list[Json] | None = None
    tool_choice: Any = None
    logprobs: bool | None = None

    def refuse_what_is_missing(self) -> None:
        """Raise InvalidRequest for what this engine cannot do."""
        if self.tools and self.tool_choice != "none":
            raise InvalidRequest("this engine reads no tool calls out of a reply: leave out tools", param="tools")
        if self.logprobs:
            raise InvalidRequest("this engine gives no logprobs", param="logprobs")
        if len(self.stops) > _MOST_STOPS:
            raise InvalidRequest(f"at most {_MOST_STOPS} stop strings are taken", param="stop")

    @property
    def stops(self) -> Sequence[str]:
        """The strings that end a reply."""
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [text for text in given if text]

    def tokens_for(self, prompt_tokens: int, *, window_tokens: int, reply_tokens: int | None = None) -> int:
        """Return the most tokens of the reply, ``reply_tokens`` where the chat names no limit.

        Raises InvalidRequest for a chat beyond the window.
        """
        asked = self.max_completion_tokens or self.max_tokens
        if prompt_tokens + (asked or 1) > window_tokens:
            raise InvalidRequest(
                f"This model's maximum context length is {window_tokens} tokens. However, you requested "
                f"{prompt_tokens + (asked or 0)} tokens ({prompt_tokens} in the messages, {asked or 0} in the reply).",
                param="messages",
                code=CONTEXT_LENGTH_EXCEEDED,
            )
        room = window_tokens - prompt_tokens
        return asked or min(reply_tokens or room, room)

    def config(self, *, most_tokens: int, end: int, choice: int) -> GenerationConfig:
        """Return how to generate a choice; choices with a seed differ by theirs."""
        config = GenerationConfig()
        config.max_new_tokens = most_tokens
        config.set_eos_token_id(end)
        config.apply_chat_template = False
        config.presence_penalty = self.presence_penalty
        config.frequency_penalty = self.frequency_penalty
        if self.temperature > 0:
            config.do_sample = True
            config.temperature = self.temperature
            config.top_p = self.top_p
            if self.top_k is not None and self.top_k > 0:
                config.top_k = self.top_k
            if self.seed is not None:
                config.rng_seed = (self.seed + choice) % (1 << 32)
        if self.response_format is not None and self.response_format.type != "text":
            schema = self.response_format.json_schema.get("schema")
            config.structured_output_config = StructuredOutputConfig(
                json_schema=json.dumps(schema) if schema else _ANY_OBJECT
            )
        return config
