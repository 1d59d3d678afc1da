"""The GPUs of estimates, by their makers' figures: the data-centre variants (SXM, OAM) where there are several, matrix
products in bfloat16 without sparsity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

GIB: Final = 1 << 30
GpuName: TypeAlias = Literal["l4", "rtx4090", "l40s", "a100-40", "a100-80", "h100", "h200", "b200", "mi300x"]


@dataclass(frozen=True, slots=True)
class Gpu:
    """``memory_gib``; ``tflops`` in 10^12 operations a second; ``bandwidth`` of its memory in 10^12 bytes a second."""

    memory_gib: float
    tflops: float
    bandwidth: float


GPUS: Final[dict[GpuName, Gpu]] = {
    "l4": Gpu(24, 121, 0.30),
    "rtx4090": Gpu(24, 165, 1.01),
    "l40s": Gpu(48, 362, 0.86),
    "a100-40": Gpu(40, 312, 1.56),
    "a100-80": Gpu(80, 312, 2.04),
    "h100": Gpu(80, 989, 3.35),
    "h200": Gpu(141, 989, 4.8),
    "b200": Gpu(180, 2250, 7.7),
    "mi300x": Gpu(192, 1307, 5.3),
}
