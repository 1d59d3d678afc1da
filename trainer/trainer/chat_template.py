"""Renders a prompt as the served model receives it: the messages after HTTP, through the checkpoint's chat template.

An engine changes a request's messages in three ways before its template renders them, and so does this module: nothing
is dropped, the arguments of earlier tool calls become objects, and no special tokens are added around the rendered
text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from transformers import PreTrainedTokenizerBase

from memloop.ports import Prompt
from memloop.wire.chat import Json
from memloop_clients.engine import request_body


class ChatTemplate:
    """A tokenizer with its chat template."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer: Any = tokenizer  # transformers' own types are partly unknown

    def render(self, prompt: Prompt) -> list[int]:
        """Return the prompt's token IDs, up to the start of the reply."""
        text: str = self._tokenizer.apply_chat_template(
            template_messages(prompt),
            tools=list(prompt.tools) or None,
            enable_thinking=prompt.thinking,
            add_generation_prompt=True,
            tokenize=False,
        )
        return self._tokenizer.encode(text, add_special_tokens=False)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of a reply without its end token."""
        return self._tokenizer.decode(token_ids, skip_special_tokens=True)


def sent_messages(prompt: Prompt) -> list[Json]:
    """Return the messages as an engine receives them over HTTP."""
    return cast(list[Json], request_body(prompt, model="")["messages"])


def template_messages(prompt: Prompt) -> list[Json]:
    """Return the messages as the engine's template receives them."""
    return [with_argument_objects(message) for message in sent_messages(prompt)]


def with_argument_objects(message: Json) -> Json:
    """Convert the arguments of a message's tool calls from JSON text to objects."""
    calls = cast(list[dict[str, Any]], message.get("tool_calls") or [])
    if not calls:
        return message
    opened = [
        {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
        for call in calls
    ]
    return {**message, "tool_calls": cast(Any, opened)}
