"""Converts conversations to token IDs: one example per reply to learn, its prompt rendered exactly as served.

A reply is not learned at its place in a rendered conversation, but after its own prompt: the messages before it,
through the checkpoint's chat template, with the generation prompt that the engine adds (an empty ``<think>`` block if
thinking is off). So the learned context equals the served one, whatever a template does to earlier turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from memloop.wire.chat import Json
from trainer.chat_template import with_argument_objects


class TemplateError(ValueError):
    """The chat template renders replies in a way that cannot be split from their prompts."""


@dataclass(frozen=True, slots=True)
class TokenExample:
    """``input_ids`` (tokens,), and 1 in ``completion_mask`` (tokens,) for learned tokens."""

    input_ids: list[int]
    completion_mask: list[int]


class Examples:
    """Makes examples with a checkpoint's tokenizer (``transformers``) and its chat template.

    An example longer than ``max_tokens`` is skipped and counted: a cut prompt would differ from the served one.
    """

    def __init__(self, tokenizer: object, *, max_tokens: int) -> None:
        self._tokenizer: Any = tokenizer
        self._max_tokens = max_tokens
        self.too_long = 0

    def of_row(self, row: Json) -> Iterator[TokenExample]:
        """Yield the examples of a row of ``schemas.CONVERSATION``. Raises TemplateError."""
        messages = [_sendable(cast(Json, message)) for message in cast(list[object], row["messages"])]
        tools = cast(list[Json], json.loads(str(row["tools"]))) if row.get("tools") else None
        for place in cast(list[int], row["learned"]):
            prompt, reply = self.split(messages[: place + 1], tools, thinking=bool(row.get("enable_thinking")))
            ids = self._encoded(prompt), self._encoded(reply)
            example = TokenExample([*ids[0], *ids[1]], [0] * len(ids[0]) + [1] * len(ids[1]))
            if len(example.input_ids) <= self._max_tokens:
                yield example
            else:
                self.too_long += 1

    def split(self, messages: Sequence[Json], tools: list[Json] | None, *, thinking: bool) -> tuple[str, str]:
        """Return the last message's prompt as served, and its reply up to its end token. Raises TemplateError."""
        before = self._rendered(messages[:-1], tools)
        whole = self._rendered(messages, tools)
        served = self._rendered(messages[:-1], tools, add_generation_prompt=True, enable_thinking=thinking)
        for prompt in (served, self._rendered(messages[:-1], tools, add_generation_prompt=True, enable_thinking=True)):
            if whole.startswith(prompt) and prompt.startswith(before):
                reply = self._to_its_end(whole[len(prompt) :])
                return served, _thought(messages[-1], reply, thinking=thinking) + reply
        raise TemplateError("the chat template shows a reply otherwise than after its generation prompt")

    def _rendered(self, messages: Sequence[Json], tools: list[Json] | None, **options: bool) -> str:
        given = {"add_generation_prompt": False, **options}
        return self._tokenizer.apply_chat_template(list(messages), tools=tools, tokenize=False, **given)

    def _to_its_end(self, reply: str) -> str:
        """Return the model's own text, up to and including its end token, at which the engine stops."""
        said, end, _ = reply.partition(self._tokenizer.eos_token)
        if not end:
            raise TemplateError(f"the chat template does not end a reply with {self._tokenizer.eos_token}")
        return said + end

    def _encoded(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)


def _thought(message: Json, rendered: str, *, thinking: bool) -> str:
    """Return the reply's thinking if the template omits it; empty if thinking is off."""
    reasoning = message.get("reasoning_content")
    if not thinking or not reasoning or str(reasoning) in rendered:
        return ""
    return f"<think>\n{reasoning}\n</think>\n\n"


def _sendable(message: Json) -> Json:
    """Convert a message as an engine passes it to the template: no absent fields, call arguments as objects."""
    held: Json = {name: value for name, value in message.items() if value is not None}
    return with_argument_objects({**held, "content": held.get("content") or ""})
