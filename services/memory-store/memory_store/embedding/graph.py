"""Runs the graph of an embedding model on the CPU: by OpenVINO, else by ONNX Runtime. Imports no torch."""

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]
"""Of the matrix products. ``auto``: bfloat16 on a processor with AMX and on AMD's with AVX512-BF16, where it nearly
halves the time; the vectors of MiniLM turn by less than a degree (cosine 0.9999 to those of float32). Others with
AVX-512 alone are slower in bfloat16 than in float32."""
Arrays: TypeAlias = "Sequence[NDArray[int64]]"
"""The graph's inputs in their order, each (texts, tokens)."""
Run: TypeAlias = Callable[[Arrays], Sequence[Sequence[float]]]
"""Inputs to one unit vector per text."""

PROBES: Final = ("How many?", "Anna sold the boat on Monday.", "It was a quiet morning in the harbour. " * 12)
"""Texts of several lengths, whose vectors by a graph are compared with those of its model."""
_LEAST_COSINE: Final = 0.999
"""Between a vector of the graph and of the model itself; bfloat16 keeps 0.9995."""
_FREE_CHARS: Final = 32
_CPU_FACTS: Final = Path("/proc/cpuinfo")
_FAST: Final = (frozenset({"amx_bf16"}), frozenset({"AuthenticAMD", "avx512_bf16"}))
"""The kernel's words for the processors that multiply bfloat16 in less time than float32."""


def from_file(path: Path, *, threads: int, bfloat16: bool) -> Run:
    """Compile an ONNX file: by OpenVINO where it is installed, because it multiplies bfloat16."""
    if importlib.util.find_spec("openvino") is not None:
        return by_openvino(path, threads=threads, bfloat16=bfloat16)
    return by_onnxruntime(path, threads=threads)


def by_openvino(graph: object, *, threads: int, bfloat16: bool) -> Run:
    """Compile a graph, given as one or as the path of its file."""
    import openvino as ov

    options = {
        "INFERENCE_PRECISION_HINT": "bf16" if bfloat16 else "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,
    }
    run = cast(Any, ov).Core().compile_model(graph, "CPU", options)

    def rows(arrays: Arrays) -> Sequence[Sequence[float]]:
        return cast("list[list[float]]", run(list(arrays))[0].tolist())

    return rows


def by_onnxruntime(path: Path, *, threads: int) -> Run:
    """Load an ONNX file; it computes in float32."""
    runtime = cast(Any, importlib.import_module("onnxruntime"))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]

    def rows(arrays: Arrays) -> Sequence[Sequence[float]]:
        [vectors] = session.run(None, dict(zip(names, arrays, strict=True)))
        return cast("list[list[float]]", vectors.tolist())

    return rows


def alike(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> bool:
    """Return whether two lists of unit vectors point the same ways."""
    return all(sum(map(mul, a, b)) > _LEAST_COSINE for a, b in zip(one, other, strict=True))


def uses_bfloat16(precision: Precision, *, facts: Path = _CPU_FACTS) -> bool:
    """Return whether to multiply in bfloat16; ``auto`` looks in the kernel's description of the processor."""
    if precision != "auto":
        return precision == "bfloat16"
    try:
        words = set(facts.read_text("utf-8", "replace").split())
    except OSError:  # another system than Linux
        return False
    return any(fast <= words for fast in _FAST)


def by_length(
    texts: Sequence[str], batch: int, forward: Callable[[list[str]], Sequence[Sequence[float]]]
) -> list[tuple[float, ...]]:
    """Return ``forward``'s vectors of the texts. Texts of similar length share a batch, so that little is padding."""
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    rows: dict[int, tuple[float, ...]] = {}
    for places in _of_similar_length(order, texts, batch):
        rows.update(zip(places, map(tuple, forward([texts[at] for at in places])), strict=True))
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
