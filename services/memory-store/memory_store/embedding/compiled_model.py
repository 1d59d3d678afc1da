"""A sentence-transformers model as one OpenVINO graph: a third less time than torch, and no interpreter lock held.

Source: https://docs.openvino.ai/2026/openvino-workflow/model-preparation/convert-model-pytorch.html
"""

import logging
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from memory_store.embedding.graph import alike, by_openvino

if TYPE_CHECKING:
    import torch

_log = logging.getLogger(__name__)

Features: TypeAlias = "Mapping[str, torch.Tensor]"
"""Token ids and masks by name, each (texts, tokens)."""
Forward: TypeAlias = "Callable[[Features], Sequence[Sequence[float]]]"
"""Features to one unit vector per text."""


def compiled(forward: "torch.nn.Module", probe: Features, *, threads: int, bfloat16: bool) -> "Forward | None":
    """Return the module as an OpenVINO graph that takes the features one by one; None if there is none.

    ``probe`` are texts of several lengths. A model that cannot be traced, or whose graph gives other vectors, runs on
    torch: a trace fixes the decisions that Python took for the traced texts.
    """
    try:
        run = _converted(forward, probe, threads=threads, bfloat16=bfloat16)
        alone = {name: tensor[:1] for name, tensor in probe.items()}
        if all(alike(run(features), forward(*features.values()).tolist()) for features in (probe, alone)):
            return run
        _log.warning("the compiled embedding model gives other vectors; it runs on torch, more slowly")
    except Exception:  # noqa: BLE001 - tracing runs the model's own code, which may raise anything
        _log.warning("the embedding model could not be compiled; it runs on torch, more slowly", exc_info=True)
    return None


def _converted(forward: "torch.nn.Module", probe: Features, *, threads: int, bfloat16: bool) -> Forward:
    import openvino as ov
    import torch

    with _quiet(), torch.no_grad():
        graph = cast(Any, ov).convert_model(forward, example_input=tuple(probe.values()))
    run = by_openvino(graph, threads=threads, bfloat16=bfloat16)
    return lambda features: run([features[name].numpy() for name in probe])


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
