"""Bounds the waits in which Ray places a run's processes: verl's own have no end."""

# verl and ray are largely untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
from __future__ import annotations

import _thread
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Timer
from typing import Any, Final, cast

import ray
from verl.single_controller.ray.base import ResourcePoolManager

_LATE: Final = signal.SIGVTALRM
"""Interrupts the wait: SIGINT is ignored in a process that a script started in the background."""


class NotPlaced(RuntimeError):
    """Ray did not find room for the run in time; the message says for what, and what was free."""


@contextmanager
def placed_within(limit_s: float, what: str) -> Generator[None]:
    """Interrupt the block, which must run in the process's main thread, after ``limit_s`` seconds. Raises NotPlaced."""
    late = Event()

    def give_up() -> None:
        late.set()
        _thread.interrupt_main(_LATE)

    # Ray ends its wait for this exception alone.
    before = signal.signal(_LATE, signal.default_int_handler)
    timer = Timer(limit_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt as interrupted:
        if not late.is_set():
            raise
        free = cast(dict[str, float], cast(Any, ray).available_resources())
        held = f"{free.get('GPU', 0):g} GPUs and {free.get('CPU', 0):g} CPUs are free in all"
        raise NotPlaced(
            f"Ray has not placed {what} within {limit_s:g} s (memloop.placement_timeout_s): {held}. "
            "Other runs may hold them"
        ) from interrupted
    finally:
        timer.cancel()
        signal.signal(_LATE, before)


@dataclass
class BoundedPools(ResourcePoolManager):
    """verl's groups of GPUs, placed at once and in ``limit_s`` seconds."""

    limit_s: float = 600.0

    def create_resource_pool(self) -> None:
        """Create the pools and wait until Ray has placed their groups. Raises NotPlaced."""
        super().create_resource_pool()
        sizes = " and ".join(f"{len(each)} × {each[0]} GPUs" for each in self.resource_pool_spec.values())
        with placed_within(self.limit_s, f"the groups of {sizes}"):
            for pool in self.resource_pool_dict.values():
                pool.get_placement_groups()
