"""The default embedding model without torch: the same vectors, and nothing heavy imported."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import openvino
import pytest

from memory_store.embedding.bundle import make_bundle
from memory_store.embedding.bundled_encoder import BUNDLE, DESCRIPTION, GRAPH, BundleBroken, BundledEncoder, is_bundled
from memory_store.embedding.graph import Products, alike, in_eight_bits, products_of
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL, ModelsNotInstalled, TorchModel, by_torch
from memory_store.models.chosen import encoder_of
from memory_store.retrieval.rerank import CrossEncoderScorer, RerankerMissing
from memory_store.settings import Settings

_ODD_TEXTS = [
    "",
    "  lead  trail \n",
    "ÄÖÜ é ﬁ 你好世界 👩‍👩‍👧",
    "x" * 400,
    "word " * 600,
    "[MASK] [CLS] hi",
    "\u200b\x00 zero",
    "$5,000.00!",
]
_EMBEDS_BY_BUNDLE = """
import sys
from pathlib import Path
import gateway.main, gateway.worker, memory_store.main
from memory_store.embedding.bundled_encoder import BundledEncoder
[vector] = BundledEncoder(threads=1, batch=1, folder=Path(sys.argv[1])).encode(["Anna sold the boat."])
print(len(vector), sorted({"torch", "transformers", "sentence_transformers", "vllm"} & set(sys.modules)))
"""
_STARTS_WITH_TWO_THREADS = """
import sys
from pathlib import Path
from memory_store.embedding.bundled_encoder import BundledEncoder
sys.setswitchinterval(1e-6)
BundledEncoder(threads=2, batch=32, folder=Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout's bundle, else a new one."""
    if is_bundled():
        return BUNDLE
    folder = tmp_path_factory.mktemp("encoder") / "minilm"
    make_bundle(folder)
    return folder


def test_the_bundle_gives_the_models_own_vectors_for_odd_texts(bundle: Path) -> None:
    model = TorchModel(DEFAULT_MODEL)
    encoder = BundledEncoder(threads=1, batch=32, precision="float32", folder=bundle)

    own = by_torch(model.unit_vectors, bfloat16=False)([model.features(_ODD_TEXTS)])[0]

    assert alike(encoder.encode(_ODD_TEXTS), own)


def test_two_threads_whose_turns_change_all_the_time_start_the_encoder(bundle: Path) -> None:
    subprocess.run([sys.executable, "-c", _STARTS_WITH_TWO_THREADS, bundle], timeout=60, check=True)


def test_weights_in_eight_bits_turn_the_vectors_by_little_on_any_processor(bundle: Path) -> None:
    whole: Any = cast(Any, openvino).Core().read_model(bundle / GRAPH)
    ids = np.array([[101, *range(2000, 2000 + 14), 102]])
    features = [ids, np.zeros_like(ids), np.ones_like(ids)]

    quick = in_eight_bits(whole)

    one, other = (cast(Any, openvino).compile_model(graph, "CPU")(features)[0].tolist() for graph in (whole, quick))
    assert one != other
    assert alike(one, other, products="int8")


def test_int8_gives_nearly_the_models_own_vectors_for_odd_texts(bundle: Path) -> None:
    whole = BundledEncoder(threads=1, batch=32, precision="float32", folder=bundle)
    quick = BundledEncoder(threads=1, batch=32, precision="int8", folder=bundle)

    assert alike(quick.encode(_ODD_TEXTS), whole.encode(_ODD_TEXTS), products="int8")


def test_two_threads_give_each_text_its_own_vector(bundle: Path) -> None:
    alone, beside = (BundledEncoder(threads=threads, batch=32, folder=bundle) for threads in (1, 2))
    texts = [f"keeper {number} of the {'old ' * (number % 9)}harbour" for number in range(100)]

    assert alike(beside.encode(texts), alone.encode(texts))
    assert beside.encode([]) == []


def _found_nowhere(name: str) -> None:
    del name


def test_without_openvino_onnx_runtime_gives_the_same_vectors(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_openvino = BundledEncoder(threads=1, batch=32, precision="float32", folder=bundle).encode(_ODD_TEXTS)
    monkeypatch.setattr(importlib.util, "find_spec", _found_nowhere)

    by_onnxruntime = BundledEncoder(threads=1, batch=32, folder=bundle).encode(_ODD_TEXTS)

    assert alike(by_onnxruntime, by_openvino)


def test_vectors_come_in_the_order_of_the_texts(bundle: Path) -> None:
    encoder = BundledEncoder(threads=1, batch=2, folder=bundle)
    texts = ["a long text about a harbour and its boats", "short", "a text of middle length"]

    assert alike(encoder.encode(texts), [encoder.encode([text])[0] for text in texts])


def test_gateway_worker_and_store_with_the_bundled_model_import_no_torch(bundle: Path) -> None:
    command = [sys.executable, "-c", _EMBEDS_BY_BUNDLE, str(bundle)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "384 []"


@pytest.mark.skipif(not is_bundled(), reason="no bundle in this checkout (make encoder)")
def test_the_default_model_comes_from_the_bundle() -> None:
    assert isinstance(encoder_of(Settings(), DEFAULT_MODEL), BundledEncoder)


def test_a_bundle_that_gives_other_vectors_is_refused(bundle: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bundle, tmp_path / "minilm")
    description = json.loads((folder / DESCRIPTION).read_text())
    description["vectors"].reverse()
    (folder / DESCRIPTION).write_text(json.dumps(description))

    with pytest.raises(BundleBroken, match="other vectors"):
        BundledEncoder(threads=1, batch=32, folder=folder)


def test_a_folder_without_a_description_is_no_bundle(tmp_path: Path) -> None:
    assert not is_bundled(tmp_path)


def test_another_model_without_torch_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(ModelsNotInstalled, match=r"needs torch.*memloop-store\[models\]"):
        encoder_of(Settings(), "some/model")


def test_a_local_reranker_without_torch_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(RerankerMissing, match=r"needs torch.*memloop-store\[models\]"):
        CrossEncoderScorer("some/reranker")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ("flags : fpu avx512_bf16 amx_bf16", "bfloat16"),
        ("vendor_id : AuthenticAMD\nflags : fpu avx512f avx512_vnni avx512_bf16", "bfloat16"),
        ("vendor_id : AuthenticAMD\nflags : fpu avx512f", "float32"),
        ("vendor_id : GenuineIntel\nflags : fpu avx512f avx512_vnni avx512_bf16", "int8"),
        ("flags : fpu avx2 avx_vnni", "int8"),
        ("flags : fpu avx2", "float32"),
    ],
)
def test_a_processor_multiplies_what_it_multiplies_fast(tmp_path: Path, facts: str, expected: Products) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(facts)

    assert products_of("auto", facts=file) == expected
    assert products_of("float32", facts=file) == "float32"


def test_without_facts_about_the_processor_vectors_are_float32(tmp_path: Path) -> None:
    assert products_of("auto", facts=tmp_path / "missing") == "float32"
