"""Runs the evaluation with a base and an adapter on this machine."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownVariableType=false
from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Self

from safetensors.torch import load_file

from trainer.small.by_hand import by_hand
from trainer.small.documents import read_documents
from trainer.small.evaluate import held_out_samples, judge, with_examples
from trainer.small.generate import Decoder
from trainer.small.network import SmallLlama, fast_type
from trainer.small.packing import Encoder
from trainer.small.sample import PROFILE, Sample

_MOST_TOKENS = {"write": 120, "relate": 24, "answer": 48, "read": 160, "conclude": 32, "chat": 200}


class Asking:
    """Asks a network for replies, prompts of like length together."""

    def __init__(self, network: SmallLlama, tokenizer: Any, *, at_once: int = 24) -> None:
        self._decode, self._tokenizer, self._encoder = Decoder(network), tokenizer, Encoder(tokenizer)
        self._at_once = at_once

    @classmethod
    def load(cls, base: Path, adapter: Path | None = None) -> Self:
        """Load a base and, if given, what it was taught. Raises OSError, KeyError for an adapter of other layers."""
        from transformers import AutoTokenizer

        network = SmallLlama.load(base, dtype=fast_type())
        held = network.adapters()
        for name, tensor in load_file(adapter).items() if adapter else ():
            held[name].data = tensor.float()
        tokenizers: Any = AutoTokenizer
        return cls(network, tokenizers.from_pretrained(base))

    def __call__(self, samples: Sequence[Sample]) -> list[str]:
        """Return the replies, in the samples' order."""
        return [text for text, _ in self._replies(samples)]

    def ended(self, samples: Sequence[Sample]) -> list[str | None]:
        """Return the replies, in the samples' order; None for one that did not end by itself."""
        return [text if whole else None for text, whole in self._replies(samples)]

    def _replies(self, samples: Sequence[Sample]) -> list[tuple[str, bool]]:
        prompts = [self._encoder.prompt(sample) for sample in samples]
        order = sorted(range(len(samples)), key=lambda place: (samples[place].task, len(prompts[place])))
        replies = [("", False)] * len(samples)
        for start in range(0, len(order), self._at_once):
            places = order[start : start + self._at_once]
            most = max(_MOST_TOKENS[samples[place].task] for place in places)
            own = [prompts[place] for place in places]
            made = self._decode(own, end=self._tokenizer.eos_token_id, most=most)
            for place, ids in zip(places, made, strict=True):
                replies[place] = self._tokenizer.decode(ids), len(ids) < most
            print(f"{start + len(places)}/{len(order)}", file=sys.stderr)
        return replies


def measure(base: Path, adapter: Path | None, *, samples: int, examples: bool) -> dict[str, object]:
    """Return the figures: share, both ends of its 95 % interval and count of each."""
    asking = Asking.load(base, adapter)
    rng = Random("examples")

    def ask(given: Sequence[Sample]) -> list[str]:
        return asking([with_examples(sample, rng) for sample in given] if examples else given)

    drawn = held_out_samples(samples)
    figures = {**judge(drawn, ask(drawn)).report(), **by_hand(ask).report()}
    return {"adapter": adapter.name if adapter else None, "examples": examples, "profile": PROFILE.ref, **figures}


def read_by(base: Path, adapter: Path | None, **reading: Any) -> dict[str, object]:
    """Return how ``documents`` were read; ``reading`` is what :func:`read_documents` takes."""
    figures = read_documents(Asking.load(base, adapter), base / "tokenizer.json", **reading)
    return {"documents": {**reading, **figures}}
