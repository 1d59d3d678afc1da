"""Generates for many requests at once: one thread steps OpenVINO's pipeline, which batches whatever is there.

Source: ``ContinuousBatchingPipeline`` of openvino-genai 2026.4. Requests may be added while another thread steps.
"""

import asyncio
import itertools
import logging
import os
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from openvino import Tensor
from openvino_genai import (
    ContinuousBatchingPipeline,
    GenerationConfig,
    GenerationFinishReason,
    GenerationStatus,
    SchedulerConfig,
)

Finish = Literal["stop", "length", "refused"]
_GIB: Final = 1 << 30
_REASONS: Final[dict[GenerationFinishReason, Finish]] = {
    GenerationFinishReason.STOP: "stop",
    GenerationFinishReason.LENGTH: "length",
}
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """New tokens of a reply; ``finish`` says why they are the last: ``refused`` where the cache has no room at all."""

    ids: Sequence[int]
    finish: Finish | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request on its way, by the pipeline's handle of it: its pieces go to a queue of the event loop."""

    handle: Any
    pieces: asyncio.Queue[Piece]
    loop: asyncio.AbstractEventLoop

    def put(self, piece: Piece) -> None:
        """Pass a piece on, from the pipeline's thread."""
        self.loop.call_soon_threadsafe(self.pieces.put_nowait, piece)


class Generator:
    """The pipeline of one model and the thread that steps it."""

    def __init__(self, weights: Path, *, most_at_once: int, step_tokens: int, cache_bytes: int) -> None:
        scheduler = SchedulerConfig()
        scheduler.max_num_seqs = most_at_once
        scheduler.max_num_batched_tokens = step_tokens
        scheduler.cache_size = -(-cache_bytes // _GIB)
        scheduler.enable_prefix_caching = True
        self.pipeline: Any = ContinuousBatchingPipeline(weights, scheduler, "CPU")
        self._tokenizer: Any = self.pipeline.get_tokenizer()
        self.end: int = self._tokenizer.get_eos_token_id()
        # The first look into a tensor sets OpenVINO's bindings up, and two threads that do it at once wait for ever
        _ = self._tokenizer.encode("a").input_ids.data
        self._numbers = itertools.count()
        self._asked: dict[int, _Asked] = {}
        self._work = threading.Condition()
        self.generated = 0
        """Tokens since the start."""
        threading.Thread(target=self._run, name="openvino", daemon=True).start()

    @property
    def requests(self) -> int:
        """Requests that are decoding or wait."""
        return len(self._asked)

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Return the tokens of a chat, as the model's own template writes it for its reply."""
        text = self._tokenizer.apply_chat_template([dict(each) for each in messages], add_generation_prompt=True)
        return self._tokenizer.encode(text, add_special_tokens=False).input_ids.data[0].tolist()

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without the special ones."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    async def generate(self, prompt: Sequence[int], config: GenerationConfig) -> AsyncGenerator[Piece]:
        """Yield the reply to a prompt, both in tokens. A caller that leaves early cancels it."""
        ids = Tensor(np.array([prompt], dtype=np.int64))
        number = next(self._numbers)
        asked = _Asked(self.pipeline.add_request(number, ids, config), asyncio.Queue(), asyncio.get_running_loop())
        with self._work:
            self._asked[number] = asked
            self._work.notify()
        try:
            finish: Finish | None = None
            while finish is None:
                piece = await asked.pieces.get()
                finish = piece.finish
                yield piece
        finally:
            asked.handle.cancel()

    def _run(self) -> None:
        try:
            while True:
                with self._work:
                    self._work.wait_for(lambda: self._asked)
                self._step()
        except Exception:
            log.exception("the pipeline failed")
            os._exit(1)  # the launcher sees the end and says it; nothing can be generated any more

    def _step(self) -> None:
        if self.pipeline.has_non_finished_requests():
            self.pipeline.step()
        for number, asked in list(self._asked.items()):
            status = asked.handle.get_status()  # asked first: no token falls between
            while asked.handle.can_read():
                for output in asked.handle.read().values():
                    self.generated += len(output.generated_ids)
                    asked.put(Piece(output.generated_ids, _REASONS.get(output.finish_reason)))
            if status != GenerationStatus.RUNNING:
                asked.put(Piece((), "refused" if status == GenerationStatus.IGNORED else "stop"))
                del self._asked[number]
