"""How much work this process holds at once: requests, and bytes of their bodies, in two lanes.

Interactive requests (chat, completions, memory) may fill the whole process. Batch requests (long reads, which ask the
engine many times each) may hold a share of it only, so that there is always room for somebody who waits at a screen.
Nobody queues here: what finds no room is refused before its body is read, while memory is still small. The limit on
one body's size is the service's, for every route.
"""

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from memloop.wire.errors import Overloaded

Lane: TypeAlias = Literal["interactive", "batch"]
_RETRY_AFTER_S: Final[Mapping[Lane, float]] = {"interactive": 1.0, "batch": 5.0}


@dataclass(frozen=True, slots=True)
class Capacity:
    """What fits into the process: requests in all, batch requests among them, bytes of bodies."""

    requests: int
    batch: int
    body_bytes: int


class Admission:
    """Counts what is under way in this process and refuses what does not fit."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._active: Counter[Lane] = Counter()
        self._body_bytes = 0

    @contextmanager
    def room(self, lane: Lane, *, body_bytes: int) -> Generator[None]:
        """Room for one request. Raises Overloaded (503) when there is none."""
        if self._is_full(lane, body_bytes):
            raise Overloaded("This process is full. Try again soon.", retry_after_s=_RETRY_AFTER_S[lane])
        self._active[lane] += 1
        self._body_bytes += body_bytes
        try:
            yield
        finally:
            self._active[lane] -= 1
            self._body_bytes -= body_bytes

    def active(self, lane: Lane) -> int:
        """Requests of the lane under way."""
        return self._active[lane]

    @property
    def body_bytes(self) -> int:
        """Bytes of bodies under way."""
        return self._body_bytes

    @property
    def fullness(self) -> float:
        """The used share, 0 to 1, of what is scarcer: requests or bytes."""
        return max(self._active.total() / self._capacity.requests, self._body_bytes / self._capacity.body_bytes)

    def _is_full(self, lane: Lane, body_bytes: int) -> bool:
        return (
            self._active.total() >= self._capacity.requests
            or (lane == "batch" and self._active["batch"] >= self._capacity.batch)
            or self._body_bytes + body_bytes > self._capacity.body_bytes
        )
