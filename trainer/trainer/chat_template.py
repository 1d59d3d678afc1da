"""A prompt as the served model sees it: the messages as they cross HTTP, through the checkpoint's own chat template.

An engine does three things to a request's messages before its template sees them, and so does this: nothing is dropped,
the arguments of earlier tool calls become objects, and no special tokens are added around the rendered text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from transformers import PreTrainedTokenizerBase

from memloop.clients.engine import request_body
from memloop.ports import Prompt
from memloop.wire.chat import Json


class ChatTemplate:
    """A tokenizer with its chat template."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer: Any = tokenizer  # transformers' own types are unknown in part

    def render(self, prompt: Prompt) -> list[int]:
        """The prompt's token ids, up to where the model goes on."""
        text: str = self._tokenizer.apply_chat_template(
            template_messages(prompt),
            tools=list(prompt.tools) or None,
            enable_thinking=prompt.thinking,
            add_generation_prompt=True,
            tokenize=False,
        )
        return self._tokenizer.encode(text, add_special_tokens=False)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of a reply, without its end token."""
        return self._tokenizer.decode(token_ids, skip_special_tokens=True)


def sent_messages(prompt: Prompt) -> list[Json]:
    """The messages as an engine receives them over HTTP."""
    return cast(list[Json], request_body(prompt, model="")["messages"])


def template_messages(prompt: Prompt) -> list[Json]:
    """The messages as the engine's template receives them."""
    return [with_argument_objects(message) for message in sent_messages(prompt)]


def with_argument_objects(message: Json) -> Json:
    """A message whose tool calls have their arguments as objects, not as JSON text."""
    calls = cast(list[dict[str, Any]], message.get("tool_calls") or [])
    if not calls:
        return message
    opened = [
        {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
        for call in calls
    ]
    return {**message, "tool_calls": cast(Any, opened)}
