"""The CPU as a platform of verl, which knows accelerators only: gloo, and nothing to reserve, empty or profile."""

# torch and verl are untyped in part; verl's class names a context manager's yield, not what it returns.
# pyright: reportUnknownMemberType=false, reportIncompatibleMethodOverride=false, reportMissingTypeStubs=false
from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from verl.plugin.platform.platform_base import PlatformBase


class _CpuDevice(ModuleType):
    """``torch.cpu``, and the calls that verl makes on an accelerator's module, which mean nothing here."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    def empty_cache(self) -> None:
        """Nothing is cached."""

    def ipc_collect(self) -> None:
        """Nothing is shared."""

    def manual_seed(self, seed: int) -> None:
        """Seed torch's generator."""
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_rng_state(self) -> torch.Tensor:
        """The state of torch's generator."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor) -> None:
        """Go back to a state of torch's generator."""
        torch.set_rng_state(state)

    def memory_allocated(self) -> int:
        """Bytes of device memory: there is none."""
        return 0

    memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated

    def mem_get_info(self) -> tuple[int, int]:
        """Free and total bytes of device memory: there is none."""
        return 0, 0

    def get_device_name(self) -> str:
        """What verl prints."""
        return "cpu"


_DEVICE = _CpuDevice("memloop_cpu_device")


class CpuPlatform(PlatformBase):
    """Ray sees one logical GPU for each training process, so that verl's placement works unchanged."""

    @property
    def device_name(self) -> str:
        """Torch's name."""
        return "cpu"

    @property
    def vendor_name(self) -> str:
        """As the engine registry knows it."""
        return "nvidia"

    @property
    def device_module(self) -> ModuleType:
        """What verl takes for ``torch.cuda``."""
        return _DEVICE

    def is_available(self) -> bool:
        """Always."""
        return True

    def current_device(self) -> Any:
        """What verl moves tensors to: an index on other platforms, which torch would take for an accelerator's."""
        return "cpu"

    def device_count(self) -> int:
        """There is one."""
        return 1

    def set_device(self, device_index: int) -> None:
        """Nothing to choose."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Nothing runs beside."""

    def manual_seed(self, seed: int) -> None:
        """Seed torch's generator."""
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seed torch's generator."""
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """Nothing to set."""

    def empty_cache(self) -> None:
        """Nothing is cached."""

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        """Not a notion here."""
        return None, None

    def communication_backend_name(self) -> str:
        """Gloo."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """What Ray sets for its logical GPU."""
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Generator[None]:
        """No ranges."""
        yield

    def profiler_start(self) -> None:
        """No profiler."""

    def profiler_stop(self) -> None:
        """No profiler."""

    def ray_resource_name(self) -> str:
        """Ray's logical GPU."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        """None."""
        return []

    def is_ipc_supported(self) -> bool:
        """Not between CPU processes, by verl's means."""
        return False

    def cudart(self) -> Any:
        """None."""
        return None
