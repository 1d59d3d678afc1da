"""Makes the bundled encoder from the model's weights: ``python -m memory_store.embedding.bundle [FOLDER]``.

Needs sentence-transformers, torch, onnx and the weights; the bundle needs none of them.
"""

import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memory_store.embedding.bundled_encoder import BUNDLE, DESCRIPTION, GRAPH, TOKENIZER, BundledEncoder, Description
from memory_store.embedding.graph import PROBES
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, TorchModel, by_torch

if TYPE_CHECKING:
    import torch

_OPSET: Final = 18
_NOTICE: Final = """\
Made from the weights and the tokenizer of sentence-transformers/all-MiniLM-L6-v2
(https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), which are under the Apache License 2.0.
Changes: traced as an ONNX graph with pooling and normalisation; weights rounded to float16.
"""


def make_bundle(folder: Path = BUNDLE) -> None:
    """Write graph, tokenizer and description into the folder, which is replaced. Raises ``BundleBroken``."""
    model = TorchModel(DEFAULT_MODEL)
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    vectors = by_torch(model.unit_vectors, bfloat16=False)([model.probe])[0]
    description = Description(inputs=tuple(model.probe), probes=PROBES, vectors=tuple(map(tuple, vectors)))
    # Write the model's tokenizer with the window and the padding that sentence-transformers asks of it
    path = fresh / TOKENIZER
    own: Any = model.transformer.tokenizer
    tokenizer = own.backend_tokenizer
    tokenizer.enable_truncation(model.transformer.max_seq_length)
    tokenizer.enable_padding(pad_id=own.pad_token_id, pad_token=own.pad_token)
    tokenizer.save(str(path), pretty=False)
    _write_graph(model, fresh / GRAPH)
    (fresh / "NOTICE").write_text(_NOTICE, "utf-8")
    (fresh / DESCRIPTION).write_text(description.model_dump_json(), "utf-8")
    BundledEncoder(threads=1, batch=len(PROBES), precision="float32", folder=fresh)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def _write_graph(model: TorchModel, path: Path) -> None:
    """Trace the model with float16 weights, which the graph widens. The model has float16 weights afterwards."""
    import torch

    axes = {name: {0: "texts", 1: "tokens"} for name in model.probe}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the decisions that a trace takes for good: the probe texts check them
        torch.onnx.export(  # pyright: ignore[reportUnknownMemberType]
            _halved(model.unit_vectors),
            tuple(model.probe.values()),
            path,
            input_names=list(model.probe),
            output_names=["vectors"],
            dynamic_axes={**axes, "vectors": {0: "texts"}},
            do_constant_folding=False,  # it would store the widened weights
            opset_version=_OPSET,
            dynamo=False,
        )


def _halved(module: "torch.nn.Module") -> "torch.nn.Module":
    import torch
    from torch.nn.utils import parametrize

    class Widened(torch.nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight.float()

    for part in list(module.half().modules()):
        for name, _ in list(part.named_parameters(recurse=False)):
            parametrize.register_parametrization(part, name, Widened(), unsafe=True)
    return module


def main(arguments: Sequence[str]) -> None:
    """Make the bundle where it is looked for, or in the given folder."""
    make_bundle(Path(arguments[0]) if arguments else BUNDLE)


if __name__ == "__main__":
    main(sys.argv[1:])
