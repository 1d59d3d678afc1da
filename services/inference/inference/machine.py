"""Describes this machine for an engine: GPU, cores, installed engines."""

import importlib.util
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal, TypeAlias

import joblib  # pyright: ignore[reportMissingTypeStubs]

EngineName: TypeAlias = Literal["vllm", "sglang", "vllm-cpu", "openvino"]
ENGINES: tuple[EngineName, ...] = ("vllm", "sglang", "vllm-cpu", "openvino")
"""The best first."""
ON_PROCESSORS: frozenset[EngineName] = frozenset({"vllm-cpu", "openvino"})
_MODULES: dict[EngineName, str] = {"sglang": "sglang", "openvino": "openvino_genai"}
"""vLLM's otherwise."""
_DISTRIBUTIONS: dict[EngineName, str] = {"openvino": "openvino-genai"}
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
            installed=frozenset(
                name
                for name in ENGINES
                if any(True for _ in metadata.distributions(name=_DISTRIBUTIONS.get(name, name)))
                and importlib.util.find_spec(_MODULES.get(name, "vllm")) is not None
            ),
            cores=joblib.cpu_count(only_physical_cores=True),
        )
