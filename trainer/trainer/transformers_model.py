"""Runs a checkpoint in this process by transformers: the loops without a server, as the published cards show.

    model = TransformersModel.load("Qwen/Qwen3-4B")
    result = await read_document(question, chunks, model=model, profile=load_profile("default"))

The reply is the raw text; the loops' own parsers extract thinking and tool calls. A ``tool_choice`` cannot be enforced
here: a model that omits a required tool call is asked once more, as usual.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from types import TracebackType
from typing import Any, Self

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from memloop.ports import Completion, Prompt
from memloop.wire.errors import DependencyError
from memloop.wire.memory import Usage
from trainer.chat_template import template_messages


class TransformersModel:
    """A ChatModel. One generation runs at a time, in its own thread; the others wait."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model: Any = model.eval()  # transformers' own types are partly unknown
        self._tokenizer: Any = tokenizer
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="generate")

    @classmethod
    def load(cls, name_or_folder: str | PathLike[str], *, device: str = "cpu", dtype: str = "auto") -> Self:
        """Load a folder or hub ID; ``dtype`` is torch's name or ``auto`` (the checkpoint's). Raises OSError."""
        models: Any = AutoModelForCausalLM
        tokenizers: Any = AutoTokenizer
        model = models.from_pretrained(name_or_folder, dtype=dtype)
        return cls(model.to(device), tokenizers.from_pretrained(name_or_folder))

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply to a prompt. Raises DependencyError when generation fails for lack of memory or window."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._generate, prompt)
        except (RuntimeError, ValueError, IndexError) as error:
            raise DependencyError(f"the model could not generate: {error}") from error

    def close(self) -> None:
        """Wait for the running generation, and end the thread."""
        self._thread.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _generate(self, prompt: Prompt) -> Completion:
        inputs = self._inputs(prompt)
        given = inputs["input_ids"].shape[1]  # (1, prompt tokens)
        with torch.inference_mode():
            output = self._model.generate(**inputs, **_decoding(prompt))
        made = output[0, given:].tolist()
        ended = len(made) < prompt.sampling.max_tokens or made[-1] in self._ends()
        return Completion(
            content=self._tokenizer.decode(made, skip_special_tokens=True),
            finish_reason="stop" if ended else "length",
            usage=Usage(input_tokens=given, output_tokens=len(made), llm_calls=1),
        )

    def _inputs(self, prompt: Prompt) -> Any:
        return self._tokenizer.apply_chat_template(
            template_messages(prompt),
            tools=list(prompt.tools) or None,
            enable_thinking=prompt.thinking,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
        ).to(self._model.device)

    def _ends(self) -> set[int]:
        ends: int | list[int] = self._model.generation_config.eos_token_id
        return set(ends) if isinstance(ends, list) else {ends}


def _decoding(prompt: Prompt) -> dict[str, Any]:
    """Return the prompt's decoding; the checkpoint's own ``generation_config`` is ignored."""
    sampling = prompt.sampling
    drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
    greedy = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    chosen = {"do_sample": True, **drawn} if sampling.temperature > 0 else greedy
    return {"max_new_tokens": sampling.max_tokens, **chosen}
