"""The default model without torch: a graph and a tokenizer, which ``make encoder`` makes from the model's weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import BaseModel
from tokenizers import Tokenizer

from memory_store.embedding.graph import Arrays, Precision, alike, by_length, from_file, products_of, with_float32
from memory_store.embedding.port import Vector

BUNDLE: Final = Path(__file__).with_name("minilm")
"""The folder of the graph; wheels contain it, a checkout makes it."""
GRAPH: Final = "graph.onnx"
TOKENIZER: Final = "tokenizer.json"
DESCRIPTION: Final = "encoder.json"


class BundleBroken(RuntimeError):
    """The bundled model gives other vectors on this machine than where it was made."""


class Description(BaseModel):
    """The graph's inputs in their order, and texts with the vectors that the model itself gives them."""

    inputs: tuple[str, ...]
    probes: tuple[str, ...]
    vectors: tuple[Vector, ...]


def is_bundled(folder: Path = BUNDLE) -> bool:
    """Return whether the folder holds a whole bundle; the description is written last."""
    return (folder / DESCRIPTION).is_file()


class BundledEncoder:
    """``Encoder`` of unit vectors of all-MiniLM-L6-v2. The tokenizer cuts texts at 256 tokens.

    ``threads``: of the matrix library; more than there are free cores are slower. Raises ``BundleBroken`` when the
    probe texts get other vectors than the description has.
    """

    def __init__(self, *, threads: int, batch: int, precision: Precision = "auto", folder: Path = BUNDLE) -> None:
        description = Description.model_validate_json((folder / DESCRIPTION).read_bytes())
        self._inputs = description.inputs
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._batch, self._threads = batch, threads
        for products in with_float32(products_of(precision)):
            self._run = from_file(folder / GRAPH, threads=threads, products=products)
            if alike(self.encode(description.probes), description.vectors, products=products):
                break
        else:
            raise BundleBroken(f"the model in {folder} gives other vectors on this machine than where it was made")

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return unit vectors as tuples of floats."""
        return by_length(texts, self._batch, lambda some: self._run(map(self._arrays, some)), threads=self._threads)

    def _arrays(self, texts: list[str]) -> Arrays:
        encodings = self._tokenizer.encode_batch(texts)
        columns = {
            "input_ids": [encoding.ids for encoding in encodings],
            "token_type_ids": [encoding.type_ids for encoding in encodings],
            "attention_mask": [encoding.attention_mask for encoding in encodings],
        }
        return [np.array(columns[name], dtype=np.int64) for name in self._inputs]
