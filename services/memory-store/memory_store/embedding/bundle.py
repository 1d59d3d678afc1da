"""Makes the bundled encoder from the model's weights: ``python -m memory_store.embedding.bundle [FOLDER]``.

Needs sentence-transformers, torch and the weights; the bundle needs none of them.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from memory_store.embedding.bundled_encoder import BUNDLE, DESCRIPTION, GRAPH, TOKENIZER, BundledEncoder, Description
from memory_store.embedding.compiled_model import traced
from memory_store.embedding.graph import PROBES
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, TorchModel, by_torch

_NOTICE = """\
Made from the weights and the tokenizer of sentence-transformers/all-MiniLM-L6-v2
(https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), which are under the Apache License 2.0.
Changes: traced as an OpenVINO graph with pooling and normalisation; weights rounded to float16.
"""


def make_bundle(folder: Path = BUNDLE) -> None:
    """Write graph, tokenizer and description into the folder, which is replaced. Raises ``BundleBroken``."""
    import openvino as ov

    model = TorchModel(DEFAULT_MODEL)
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    cast(Any, ov).save_model(traced(model.unit_vectors, model.probe), fresh / GRAPH, compress_to_fp16=True)
    _write_tokenizer(model, fresh / TOKENIZER)
    (fresh / "NOTICE").write_text(_NOTICE, "utf-8")
    (fresh / DESCRIPTION).write_text(_description(model).model_dump_json(), "utf-8")
    BundledEncoder(threads=1, batch=len(PROBES), precision="float32", folder=fresh)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def _description(model: TorchModel) -> Description:
    vectors = by_torch(model.unit_vectors, bfloat16=False)(model.probe)
    return Description(inputs=tuple(model.probe), probes=PROBES, vectors=tuple(map(tuple, vectors)))


def _write_tokenizer(model: TorchModel, path: Path) -> None:
    """Write the model's tokenizer with the window and the padding that sentence-transformers asks of it."""
    own: Any = model.transformer.tokenizer
    tokenizer = own.backend_tokenizer
    tokenizer.enable_truncation(model.transformer.max_seq_length)
    tokenizer.enable_padding(pad_id=own.pad_token_id, pad_token=own.pad_token)
    tokenizer.save(str(path), pretty=False)


def main(arguments: Sequence[str]) -> None:
    """Make the bundle where it is looked for, or in the given folder."""
    make_bundle(Path(arguments[0]) if arguments else BUNDLE)


if __name__ == "__main__":
    main(sys.argv[1:])
