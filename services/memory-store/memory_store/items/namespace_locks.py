"""One write at a time per lane inside this process."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from memory_store.vectors.gate import Gate


@dataclass(slots=True)
class _Lane:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Lanes:
    """Locks by name; a lane that nobody uses is forgotten. While the gate is closed, nobody gets a lane."""

    def __init__(self, gate: Gate | None = None) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._gate = gate or Gate()

    def __len__(self) -> int:
        return len(self._lanes)

    @contextlib.asynccontextmanager
    async def hold(self, name: str) -> AsyncGenerator[None]:
        """Wait for the lane and keep it for the block."""
        lane = self._lanes.setdefault(name, _Lane())
        lane.users += 1
        try:
            async with lane.lock, self._gate.shared():
                yield
        finally:
            lane.users -= 1
            if lane.users == 0:
                del self._lanes[name]
