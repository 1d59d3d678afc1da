"""Runs a checkpoint as a ChatModel in this process: many concurrent reads share the CPU engine's batch."""

# transformers is partly untyped; values that reach our own code are typed.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import torch
from transformers import AutoTokenizer

from memloop.ports import Completion, Prompt
from memloop.wire.memory import Usage
from trainer.chat_template import ChatTemplate
from trainer.rollout.cpu.engine import CpuEngine, Size
from trainer.rollout.cpu.sampling import Decoding


class BatchedModel:
    """Decodes as each prompt requests, greedily at temperature 0.

    :class:`trainer.transformers_model.TransformersModel` runs on any device, one generation at a time.
    """

    def __init__(self, engine: CpuEngine, template: ChatTemplate, *, repeats: bool = False) -> None:
        self._engine = engine
        self._template = template
        self._repeats = repeats
        self._last: list[int] = []

    @classmethod
    def load(cls, folder: Path, size: Size, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> Self:
        """Load from a folder in Hugging Face form. Raises OSError for any other folder."""
        tokenizers: Any = AutoTokenizer
        engine = CpuEngine(folder, size, seed=seed, dtype=dtype)
        return cls(engine, ChatTemplate(tokenizers.from_pretrained(folder)))

    def for_one_reader(self) -> Self:
        """Return a model on the same engine whose draft of a reply is the last reply.

        A reader's memory seldom changes, so most of its turns then cost one forward pass.
        """
        return type(self)(self._engine, self._template, repeats=True)

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply. Raises ValueError when prompt and reply do not fit a row of the engine."""
        sampling, prompt_ids = prompt.sampling, self._template.render(prompt)
        reply = await self._engine.generate(
            prompt_ids,
            max_tokens=sampling.max_tokens,
            decoding=Decoding(temperature=sampling.temperature, top_p=sampling.top_p),
            draft=self._last,
        )
        if self._repeats:
            self._last = reply.made
        return Completion(
            content=self._template.decode(reply.made),
            finish_reason="stop" if reply.ended else "length",
            usage=Usage(input_tokens=len(prompt_ids), output_tokens=len(reply.made), llm_calls=1),
        )

    def close(self) -> None:
        """Stop after the current token."""
        self._engine.close()
