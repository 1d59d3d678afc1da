"""The CPU as a platform of verl, which supports only accelerators: gloo, and no-ops for device memory and profiling."""

# torch and verl are partly untyped; verl's annotation names a context manager's yield, not its return type.
# pyright: reportUnknownMemberType=false, reportIncompatibleMethodOverride=false, reportMissingTypeStubs=false
from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from verl.plugin.platform.platform_base import PlatformBase

from trainer.rollout.cpu import PLATFORM


class _CpuDevice(ModuleType):
    """``torch.cpu``, with the accelerator calls of verl as no-ops."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    def empty_cache(self) -> None:
        """Do nothing: there is no cache."""

    def ipc_collect(self) -> None:
        """Do nothing: no memory is shared."""

    def manual_seed(self, seed: int) -> None:
        """Seed torch's generator."""
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_rng_state(self) -> torch.Tensor:
        """Return the state of torch's generator."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor) -> None:
        """Restore a state of torch's generator."""
        torch.set_rng_state(state)

    def memory_allocated(self) -> int:
        """Return 0: there is no device memory."""
        return 0

    memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated

    def mem_get_info(self) -> tuple[int, int]:
        """Return zeros: there is no device memory."""
        return 0, 0

    def get_device_name(self) -> str:
        """Return the name that verl prints."""
        return "cpu"


_DEVICE = _CpuDevice("memloop_cpu_device")


class CpuPlatform(PlatformBase):
    """Gives Ray one logical GPU for each training process, so that verl's placement works unchanged."""

    @property
    def device_name(self) -> str:
        """Return torch's name."""
        return "cpu"

    @property
    def vendor_name(self) -> str:
        """Return the engine registry's name."""
        return "nvidia"

    @property
    def device_module(self) -> ModuleType:
        """Return the replacement of ``torch.cuda``."""
        return _DEVICE

    def is_available(self) -> bool:
        """Return True."""
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        """Return whether a recipe asks for the CPU: verl takes the first platform there is, and a CPU always is."""
        return os.environ.get("VERL_PLATFORM") == PLATFORM

    def current_device(self) -> Any:
        """Return the target device of verl's tensors: an index would select an accelerator in torch."""
        return "cpu"

    def device_count(self) -> int:
        """Return one."""
        return 1

    def set_device(self, device_index: int) -> None:
        """Do nothing: there is one device."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Do nothing: CPU operations are synchronous."""

    def manual_seed(self, seed: int) -> None:
        """Seed torch's generator."""
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seed torch's generator."""
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """Do nothing: there is no device allocator."""

    def empty_cache(self) -> None:
        """Do nothing: there is no cache."""

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        """Return None: a CPU has no compute capability."""
        return None, None

    def communication_backend_name(self) -> str:
        """Return gloo."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """Return the variable that Ray sets for its logical GPU."""
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Generator[None]:
        """Do nothing: the CPU has no NVTX ranges."""
        yield

    def profiler_start(self) -> None:
        """Do nothing: there is no profiler."""

    def profiler_stop(self) -> None:
        """Do nothing: there is no profiler."""

    def ray_resource_name(self) -> str:
        """Return Ray's logical GPU."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        """Return an empty list."""
        return []

    def is_ipc_supported(self) -> bool:
        """Return False: verl's IPC does not work between CPU processes."""
        return False

    def cudart(self) -> Any:
        """Return None: there is no CUDA runtime."""
        return None
