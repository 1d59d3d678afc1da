"""The rollout engine on a CPU: one model and its batcher in a thread, awaitable replies, replaceable weights."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import asyncio
import queue
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from trainer.rollout.cpu.batcher import Batcher, Request
from trainer.rollout.cpu.sampling import Decoding


@dataclass(frozen=True, slots=True)
class Size:
    """The number of concurrent rows, and the largest total of prompt and reply tokens."""

    rows: int
    length: int


class CpuEngine:
    """Generates in float32, like training, so that log-probabilities agree; bfloat16 is faster for reading alone."""

    def __init__(self, folder: str | Path, size: Size, *, seed: int, dtype: torch.dtype = torch.float32) -> None:
        models: Any = AutoModelForCausalLM  # its overloads are partly unknown
        self._model: PreTrainedModel = models.from_pretrained(folder, dtype=dtype)
        self._batcher = Batcher(self._model, ends=_ends(self._model), rows=size.rows, length=size.length, seed=seed)
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waiting: dict[Request, Future[Request]] = {}
        self._thread = threading.Thread(target=self._run, name="generate", daemon=True)
        self._thread.start()

    async def generate(
        self,
        prompt: list[int],
        *,
        max_tokens: int,
        decoding: Decoding,
        draft: Sequence[int] = (),
        seed: str | None = None,
    ) -> Request:
        """Return the finished request; a ``draft`` changes its cost alone. Raises ValueError when it does not fit.

        The same prompt and ``seed`` give the same reply, whichever other requests run, except where two tokens are so
        near that rounding decides. With one row (``Size.rows``) it is the same to the last digit.
        """
        request, reply = Request(prompt, max_tokens, decoding, list(draft)), Future[Request]()
        request.dice = None if seed is None else random.Random(seed)
        self._inbox.put(lambda: self._submit(request, reply))
        return await asyncio.wrap_future(reply)

    async def load(self, weights: Mapping[str, Tensor]) -> None:
        """Load new weights between two tokens. Raises KeyError unless they are exactly the model's parameters."""
        done: Future[None] = Future()
        self._inbox.put(lambda: _settle(done, lambda: load_weights(self._model, weights)))
        await asyncio.wrap_future(done)

    def close(self) -> None:
        """Stop after the current token; waiting requests are cancelled."""
        self._inbox.put(None)
        self._thread.join()

    def _submit(self, request: Request, reply: Future[Request]) -> None:
        try:
            self._batcher.submit(request)
        except ValueError as error:
            reply.set_exception(error)
        else:
            self._waiting[request] = reply

    def _run(self) -> None:
        while self._take_in():
            try:
                finished = self._batcher.step()
            except Exception as error:  # noqa: BLE001 -- whatever it is, those who wait must know
                self._fail(error)
                return
            for request in finished:
                self._waiting.pop(request).set_result(request)
        self._fail(asyncio.CancelledError())

    def _take_in(self) -> bool:
        """Process all pending orders; wait for one when idle. Returns False at the end."""
        while self._batcher.idle or not self._inbox.empty():
            order = self._inbox.get()
            if order is None:
                return False
            order()
        return True

    def _fail(self, error: BaseException) -> None:
        for reply in self._waiting.values():
            reply.set_exception(error)
        self._waiting.clear()


@torch.no_grad()
def load_weights(model: PreTrainedModel, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into the model. Raises KeyError for missing or unknown ones; tied weights may come once or twice."""
    own = dict(model.named_parameters(remove_duplicate=False))
    unknown = weights.keys() - own.keys()
    given = {own[name].data_ptr() for name in weights.keys() - unknown}
    missing = {name for name, parameter in own.items() if parameter.data_ptr() not in given}
    if unknown or missing:
        raise KeyError(f"weights do not fit the model: unknown {sorted(unknown)}, missing {sorted(missing)}")
    for name, weight in weights.items():
        own[name].copy_(weight)


def _ends(model: PreTrainedModel) -> frozenset[int]:
    settings: Any = model.generation_config
    ends: int | list[int] = settings.eos_token_id
    return frozenset(ends if isinstance(ends, list) else [ends])


def _settle(done: Future[None], work: Callable[[], None]) -> None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 -- it is the caller's, who waits for it
        done.set_exception(error)
    else:
        done.set_result(None)
