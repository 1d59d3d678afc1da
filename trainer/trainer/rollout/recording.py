"""A ChatModel that generates token IDs and records them as the rows for training.

The engine's token IDs are the trained ones: a reply is decoded for the loop to read, and never re-encoded. Each prompt
of a loop is a conversation of its own, so each turn is one row.
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
    """A reply: IDs and their log-probabilities under the policy of step ``version``, which sampled them."""

    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    truncated: bool
    version: int


class TokenEngine(Protocol):
    """Generates from token IDs. It chooses its own decoding, except for the limit."""

    async def generate(self, prompt_ids: list[int], *, max_tokens: int) -> Generated:
        """Generate a reply of at most ``max_tokens`` tokens, including its end token."""
        ...


class Template(Protocol):
    """Converts prompts to token IDs and back; see :class:`trainer.chat_template.ChatTemplate`."""

    def render(self, prompt: Prompt) -> list[int]:
        """Return a prompt's token IDs."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return a reply's text."""
        ...


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt and its reply. ``step`` is the loop's report of it: None before the report."""

    prompt: Prompt
    prompt_ids: tuple[int, ...]
    reply: Generated
    step: ReadStep | DecideStep | None = None


class PromptTooLong(ValueError):
    """The prompt exceeds the run's limit; a cut one would differ from the served one."""


async def ask(prompt: Prompt, engine: TokenEngine, template: Template, *, max_prompt_tokens: int) -> Turn:
    """Return the call. Raises PromptTooLong, EngineError for an empty reply, and the engine's errors."""
    prompt_ids = template.render(prompt)
    if len(prompt_ids) > max_prompt_tokens:
        raise PromptTooLong(
            f"a prompt of {len(prompt_ids)} tokens is longer than data.max_prompt_length={max_prompt_tokens}"
        )
    reply = await engine.generate(prompt_ids, max_tokens=prompt.sampling.max_tokens)
    if not reply.token_ids:
        raise EngineError("the rollout engine made no token")
    return Turn(prompt, tuple(prompt_ids), reply)


def completion_of(turn: Turn, template: Template) -> Completion:
    """Return the reply as a loop reads it."""
    return Completion(
        content=template.decode(turn.reply.token_ids),
        finish_reason="length" if turn.reply.truncated else "stop",
        usage=Usage(input_tokens=len(turn.prompt_ids), output_tokens=len(turn.reply.token_ids), llm_calls=1),
    )


class RecordingModel:
    """A ChatModel for one run of one loop, which makes one call at a time and reports a step after each reply."""

    def __init__(self, engine: TokenEngine, template: Template, *, max_prompt_tokens: int) -> None:
        self._engine = engine
        self._template = template
        self._max_prompt_tokens = max_prompt_tokens
        self.turns: list[Turn] = []

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply. Raises PromptTooLong, EngineError for an empty reply, and the engine's errors."""
        turn = await ask(prompt, self._engine, self._template, max_prompt_tokens=self._max_prompt_tokens)
        self.turns.append(turn)
        return completion_of(turn, self._template)

    async def report(self, step: ReadStep | DecideStep) -> None:
        """Attach the step to the last reply. Raises ValueError when that has a step already."""
        if isinstance(step, RereadStarted):
            return
        if not self.turns or self.turns[-1].step is not None:
            raise ValueError("a step without a reply of its own: the loop ran calls side by side")
        self.turns[-1] = replace(self.turns[-1], step=step)
