"""Runs the graph of an embedding model on the CPU: by OpenVINO, else by ONNX Runtime. Imports no torch.

Source of the form of weights in eight bits:
https://docs.openvino.ai/2026/openvino-workflow/model-optimization-guide/weight-compression.html
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import numpy as np

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

Products: TypeAlias = Literal["float32", "bfloat16", "int8"]
"""The numbers that are multiplied. The vectors of MiniLM in bfloat16 have a cosine of 0.9999 to those of float32, in
int8 0.9996 in the mean and 0.998 at least."""
Precision: TypeAlias = Literal["auto"] | Products
"""``auto``: bfloat16 on a processor with AMX and on AMD's with AVX512-BF16, else int8 on one with VNNI, each in about
half the time. Others with AVX-512 alone are slower in bfloat16 than in float32."""
Arrays: TypeAlias = "Sequence[NDArray[int64]]"
"""The graph's inputs in their order, each (texts, tokens)."""
Rows: TypeAlias = Sequence[Sequence[float]]
"""One unit vector per text."""
Run: TypeAlias = Callable[[Iterable[Arrays]], Sequence[Rows]]
"""The inputs of batches to their vectors."""

PROBES: Final = ("How many?", "Anna sold the boat on Monday.", "It was a quiet morning in the harbour. " * 12)
"""Texts of several lengths, whose vectors by a graph are compared with those of its model."""
LEAST_COSINE: Final[dict[Products, float]] = {"float32": 0.999, "bfloat16": 0.999, "int8": 0.995}
"""Between a vector of the graph and of the model itself."""
_GROUP: Final = 32
"""So many weights of a row share a scale in int8, and so many values that they are multiplied with."""
_ROWS_AND_COLUMNS: Final = 2
_MOST: Final = 127
_TINY: Final = 1e-12
_FREE_CHARS: Final = 32
_CPU_FACTS: Final = Path("/proc/cpuinfo")
_FAST: Final = (frozenset({"amx_bf16"}), frozenset({"AuthenticAMD", "avx512_bf16"}))
"""The kernel's words for the processors that multiply bfloat16 in less time than float32."""
_MULTIPLY_BYTES: Final = frozenset(("avx512_vnni", "avx_vnni"))


def from_file(path: Path, *, threads: int, products: Products) -> Run:
    """Compile an ONNX file: by OpenVINO where it is installed, because it multiplies bfloat16 and int8."""
    if importlib.util.find_spec("openvino") is None:
        return by_onnxruntime(path, threads=threads)
    import openvino as ov

    return by_openvino(cast(Any, ov).Core().read_model(path), threads=threads, products=products)


def by_openvino(graph: object, *, threads: int, products: Products) -> Run:
    """Compile a model of OpenVINO. Each batch has one thread: several are computed side by side.

    Two threads of one short text would wait for each other more than they compute.
    """
    import openvino as ov

    options = {
        "INFERENCE_PRECISION_HINT": "bf16" if products == "bfloat16" else "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": _GROUP if products == "int8" else 0,
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": threads,
        "ENABLE_CPU_PINNING": False,
    }
    whole = cast(Any, ov).Core().compile_model(in_eight_bits(graph) if products == "int8" else graph, "CPU", options)
    beside = ThreadPoolExecutor(threads, thread_name_prefix="embedding")

    def rows(arrays: Arrays) -> Rows:
        return whole.create_infer_request().infer(list(arrays))[0].tolist()

    # The first inference of a process must be alone. It fills a table of OpenVINO under a lock of C++ and lets other
    # threads have the interpreter meanwhile: one that infers then waits for the lock and never gives it back.
    rows([np.ones((1, 2), dtype=np.int64) for _ in whole.inputs])

    def run(batches: Iterable[Arrays]) -> Sequence[Rows]:
        given = list(batches)
        return list(map(rows, given) if len(given) == 1 else beside.map(rows, given))

    return run


def in_eight_bits(graph: object) -> object:
    """Return a copy whose matrix products have their constant weights as bytes times a scale for each group."""
    from openvino import opset13, passes

    ops, folding = cast(Any, opset13), cast(Any, passes).Manager()
    copy: Any = cast(Any, graph).clone()
    folding.register_pass(cast(Any, passes).ConstantFolding())
    folding.run_passes(copy)
    for node in copy.get_ordered_ops():
        weights = node.input_value(1).get_node() if node.get_type_name() == "MatMul" else None
        if weights is None or weights.get_type_name() != "Constant":
            continue
        data: NDArray[float32] = np.asarray(weights.get_data(), dtype=np.float32)
        rows = data if node.get_attributes()["transpose_b"] else data.swapaxes(-1, -2)
        if rows.ndim != _ROWS_AND_COLUMNS or rows.shape[1] % _GROUP:
            continue
        groups = rows.reshape(rows.shape[0], -1, _GROUP)
        scales = np.maximum(np.abs(groups).max(axis=-1, keepdims=True), _TINY) / _MOST
        as_bytes = ops.convert(ops.constant(np.asarray(np.round(groups / scales), dtype=np.int8)), "f32")
        shape = ops.constant(np.array(rows.shape, dtype=np.int64))
        widened = ops.reshape(ops.multiply(as_bytes, ops.constant(scales)), shape, special_zero=False)
        product = ops.matmul(node.input_value(0), widened, node.get_attributes()["transpose_a"], True)
        product.set_friendly_name(node.get_friendly_name())
        node.output(0).replace(product.output(0))
    return copy


def by_onnxruntime(path: Path, *, threads: int) -> Run:
    """Load an ONNX file; it computes in float32."""
    runtime = cast(Any, importlib.import_module("onnxruntime"))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]

    def run(batches: Iterable[Arrays]) -> Sequence[Rows]:
        return [session.run(None, dict(zip(names, arrays, strict=True)))[0].tolist() for arrays in batches]

    return run


def alike(one: Rows, other: Rows, *, products: Products = "float32") -> bool:
    """Return whether two lists of unit vectors point the same ways, as nearly as such products can."""
    return all(sum(map(mul, a, b)) > LEAST_COSINE[products] for a, b in zip(one, other, strict=True))


def products_of(precision: Precision, *, facts: Path = _CPU_FACTS) -> Products:
    """Return what to multiply; ``auto`` looks in the kernel's description of the processor."""
    if precision != "auto":
        return precision
    try:
        words = set(facts.read_text("utf-8", "replace").split())
    except OSError:  # another system than Linux
        return "float32"
    if any(fast <= words for fast in _FAST):
        return "bfloat16"
    return "int8" if _MULTIPLY_BYTES & words else "float32"


def with_float32(products: Products) -> Sequence[Products]:
    """Return what to try in turn: a model whose vectors other products turn too far is multiplied in float32."""
    return list(dict.fromkeys((products, "float32")))


def by_length(
    texts: Sequence[str], batch: int, forward: Callable[[Iterable[list[str]]], Sequence[Rows]], *, threads: int = 1
) -> list[tuple[float, ...]]:
    """Return ``forward``'s vectors of the texts. Texts of similar length share a batch, so that little is padding.

    ``threads``: so many batches are computed side by side, and have a part of the texts each.
    """
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    batches = list(_of_similar_length(order, texts, min(batch, -(-len(texts) // threads))))
    rows: dict[int, tuple[float, ...]] = {}
    for places, vectors in zip(batches, forward([texts[at] for at in places] for places in batches), strict=True):
        rows.update(zip(places, map(tuple, vectors), strict=True))
    return [rows[at] for at in range(len(texts))]


def _of_similar_length(order: Sequence[int], texts: Sequence[str], batch: int) -> Iterator[list[int]]:
    """Yield runs of at most ``batch`` places, which are in order of length: a text is padded to twice its own at most.

    Some characters more are free, so that very short texts stay together.
    """
    places: list[int] = []
    for at in order:
        if places and (len(places) == batch or len(texts[at]) > 2 * len(texts[places[0]]) + _FREE_CHARS):
            yield places
            places = []
        places.append(at)
    if places:
        yield places
