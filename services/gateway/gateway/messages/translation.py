"""Translates a whole request to a chat: the fields for the engine, and the user and words for memory."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import orjson
from pydantic import JsonValue

from gateway.chat import of_user
from gateway.messages.blocks import TextParam, UserMessage
from gateway.messages.requests import AnthropicTool, AnyTool, CreateMessage, Prompt
from gateway.messages.to_chat import chat_messages, refuse, system_prompt
from memloop.wire.chat import NO_OPTIONS, ChatRequest, Json, is_of_agent
from memloop_clients import Dialect
from memloop_service.http import JsonBody, json_text, validated

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CLAUDE_CODE: Final = re.compile(
    f"user_(?P<device_id>[0-9a-f]{{64}})_account_(?P<account_uuid>(?:{_UUID})?)_session_{_UUID}"
)
"""The form before version 2.1.78; later it is a JSON object as a string."""
_JSON_FIELDS: Final = frozenset({"device_id", "account_uuid", "session_id"})


def user_of(user_id: str) -> str:
    """Return the id of the user, the same in every session."""
    fields: Mapping[str, object] = {}
    if (found := _CLAUDE_CODE.fullmatch(user_id)) is not None:
        fields = found.groupdict()
    elif user_id.startswith("{"):
        with suppress(orjson.JSONDecodeError):
            parsed: dict[str, object] = orjson.loads(user_id)
            is_ours = parsed.keys() == _JSON_FIELDS and all(isinstance(value, str) for value in parsed.values())
            fields = parsed if is_ours else {}
    if account := fields.get("account_uuid"):
        return f"account_{account}"
    return f"device_{device}" if (device := fields.get("device_id")) else user_id


_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_LONGEST_USER: Final = 64
"""The longest ``user`` that OpenAI's own endpoint takes."""
_NO_EDIT: Final = "clear_thinking_20251015"
_DIRECT: Final = "direct"


@dataclass(frozen=True, slots=True)
class TranslatedChat:
    """A chat. ``places`` holds the index of the client's own message for each of the chat's; -1 for the system's."""

    body: JsonBody
    fields: ChatRequest
    places: tuple[int, ...]

    def place_of(self, index: int) -> int:
        """Return the index of the client's message that a message of the chat comes from."""
        return self.places[index]


@dataclass(frozen=True, slots=True)
class _Placed:
    place: int
    message: Json
    heard: Json
    """The message as memory reads it."""


def translated(asked: CreateMessage, dialect: Dialect) -> TranslatedChat:
    """Translate a request, in its engine's dialect. Raises InvalidRequest (400) for fields that no chat can hold."""
    placed = _placed(asked)
    if asked.messages[-1].role == "assistant":
        refuse("messages", "the last message is the assistant's, and chat completions cannot continue it (prefill).")
    fields = _fields(asked, placed) | _generation(asked, dialect)
    reads = (asked.memory or NO_OPTIONS).long_context == "auto"
    user_id = asked.metadata.user_id if asked.metadata is not None else None
    read = ChatRequest.model_validate(
        {
            "model": asked.model,
            "messages": [row.message if reads else row.heard for row in placed],
            "stream": asked.stream,
            "memory": asked.memory,
            "user": user_of(user_id) if user_id else None,  # so that it comes after the header X-Memory-User-Id
        }
    )
    return TranslatedChat(JsonBody(json_text(fields), fields), read, tuple(row.place for row in placed))


def prompt_of(asked: Prompt) -> tuple[ChatRequest, Json]:
    """Translate a prompt alone, to count its tokens. Raises as ``translated`` does."""
    fields = _fields(asked, _placed(asked))
    return validated(ChatRequest, fields), fields


def _placed(asked: Prompt) -> list[_Placed]:
    system = system_prompt(asked.system)
    one: Json = {"role": "system", "content": system}
    found = [_Placed(-1, one, one)] if system else []
    for place, message in enumerate(asked.messages):
        blocks = message.content if isinstance(message, UserMessage) and not isinstance(message.content, str) else ()
        texts = [block.text for block in blocks if isinstance(block, TextParam)]
        own = [text for text in texts if not is_of_agent(text)]
        ones = chat_messages(message, f"messages.{place}")
        found += [_Placed(place, one, of_user(one, texts, own)) for one in ones]
    return found


def _fields(asked: Prompt, placed: list[_Placed]) -> Json:
    """Return the fields of the prompt."""
    for place, edit in enumerate(asked.context_management.edits if asked.context_management is not None else ()):
        if edit.type != _NO_EDIT or edit.keep != "all":  # keeping all thinking edits nothing
            refuse(f"context_management.edits.{place}", "the gateway does not edit the context; send what is needed.")
    fields: Json = {"model": asked.model, "messages": [row.message for row in placed]}
    if asked.tools:
        fields["tools"] = [_tool(tool, f"tools.{place}") for place, tool in enumerate(asked.tools)]
    if (choice := asked.tool_choice) is not None:
        if choice.type == "tool" and not choice.name:
            refuse("tool_choice.name", "name the tool.")
        named: Json = {"type": "function", "function": {"name": choice.name}}
        fields["tool_choice"] = named if choice.type == "tool" else _CHOICES[choice.type]
        if choice.disable_parallel_tool_use is not None:
            fields["parallel_tool_calls"] = not choice.disable_parallel_tool_use
    wanted = asked.output_config.format if asked.output_config is not None else None
    if wanted is not None:
        schema: Json = {"name": "answer", "schema": wanted.schema_, "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields


def _generation(asked: CreateMessage, dialect: Dialect) -> Json:
    """Return the fields that control the answer."""
    user_id = asked.metadata.user_id if asked.metadata is not None else None
    fields: dict[str, JsonValue] = {
        dialect.limit_field: asked.max_tokens,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "top_k": asked.top_k,
        "stop": list(asked.stop_sequences) if asked.stop_sequences else None,
        "user": user_id if user_id and len(user_id) <= _LONGEST_USER else None,
    }
    if asked.stream:
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    effort = asked.output_config.effort if asked.output_config is not None else None
    if dialect.of_reasoning is None:  # else the endpoint is known, and this is not one of its reasoning models
        fields["reasoning_effort"] = effort
    return {name: value for name, value in fields.items() if value is not None}


def _tool(tool: AnyTool, place: str) -> Json:
    if isinstance(tool, AnthropicTool):
        refuse(place, f"{tool.type} is a tool of Anthropic's; send tools with an input_schema.")
    if tool.allowed_callers and _DIRECT not in tool.allowed_callers:
        refuse(f"{place}.allowed_callers", "only the model itself calls tools.")
    function: Json = tool.model_dump(include={"name", "description", "strict"}, exclude_none=True)
    examples: Json = {"examples": [*tool.input_examples]} if tool.input_examples else {}
    return {"type": "function", "function": {**function, "parameters": {**tool.input_schema, **examples}}}
