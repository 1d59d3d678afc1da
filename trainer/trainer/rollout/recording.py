"""A ChatModel that generates token by token ids and keeps what it did: the rows that training learns from.

The ids that the engine made are the ids that are trained on: a reply is decoded for the loop to read, and never encoded
again. Each prompt of a loop is a conversation of its own, so each turn is one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from memloop.loops.steps import DecideStep, ReadStep, RereadStarted
from memloop.ports import Completion, Prompt
from memloop.wire.errors import EngineError
from memloop.wire.memory import Usage


@dataclass(frozen=True, slots=True)
class Generated:
    """A reply: ids and their log-probabilities under the policy that drew them; ``version`` is that policy's step."""

    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    truncated: bool
    version: int


class TokenEngine(Protocol):
    """Generates from token ids. How it decodes is its own affair, but for the limit."""

    async def generate(self, prompt_ids: list[int], *, max_tokens: int) -> Generated:
        """A reply of at most ``max_tokens`` tokens, its end token among them."""
        ...


class Template(Protocol):
    """Between prompts and token ids; see :class:`trainer.chat_template.ChatTemplate`."""

    def render(self, prompt: Prompt) -> list[int]:
        """A prompt's token ids."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """A reply's text."""
        ...


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt and its reply. ``step`` is what the loop made of it: None while it has not said."""

    prompt: Prompt
    prompt_ids: tuple[int, ...]
    reply: Generated
    step: ReadStep | DecideStep | None = None


class PromptTooLong(ValueError):
    """A prompt beyond the longest that the run trains on: cut, it would be another prompt than the served one."""


class RecordingModel:
    """A ChatModel for one run of one loop, which asks one thing at a time and reports a step after each reply."""

    def __init__(self, engine: TokenEngine, template: Template, *, max_prompt_tokens: int) -> None:
        self._engine = engine
        self._template = template
        self._max_prompt_tokens = max_prompt_tokens
        self.turns: list[Turn] = []

    async def complete(self, prompt: Prompt) -> Completion:
        """The reply. Raises PromptTooLong, EngineError when nothing was generated, and what the engine raises."""
        prompt_ids = self._template.render(prompt)
        if len(prompt_ids) > self._max_prompt_tokens:
            raise PromptTooLong(
                f"a prompt of {len(prompt_ids)} tokens is longer than data.max_prompt_length={self._max_prompt_tokens}"
            )
        reply = await self._engine.generate(prompt_ids, max_tokens=prompt.sampling.max_tokens)
        if not reply.token_ids:
            raise EngineError("the rollout engine made no token")
        self.turns.append(Turn(prompt, tuple(prompt_ids), reply))
        return Completion(
            content=self._template.decode(reply.token_ids),
            finish_reason="length" if reply.truncated else "stop",
            usage=Usage(input_tokens=len(prompt_ids), output_tokens=len(reply.token_ids), llm_calls=1),
        )

    async def report(self, step: ReadStep | DecideStep) -> None:
        """The loop's report: the step belongs to the last reply. Raises ValueError when that has a step already."""
        if isinstance(step, RereadStarted):
            return
        if not self.turns or self.turns[-1].step is not None:
            raise ValueError("a step without a reply of its own: the loop ran calls side by side")
        self.turns[-1] = replace(self.turns[-1], step=step)
