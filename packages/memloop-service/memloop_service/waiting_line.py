"""A line of waiting requests in which owners take turns: round robin over tenants or callers, oldest first inside each.

The order is that of the queues (docs/decisions/0047-tenants-take-turns.md).
"""

import asyncio
from collections import deque
from typing import Generic, TypeVar

Owner = TypeVar("Owner", str, bytes)


class WaitingLine(Generic[Owner]):
    """Who waits in one event loop. It is true while someone waits."""

    def __init__(self) -> None:
        self._lines: dict[Owner, deque[asyncio.Future[None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def join(self, owner: Owner) -> asyncio.Future[None]:
        """Return a future that is done when it is this request's turn. To leave the line, cancel it."""
        turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(owner, deque()).append(turn)
        return turn

    def release(self) -> bool:
        """Give the turn to the oldest request of the owner who has waited longest for one; whether someone took it."""
        while self._lines:
            owner = next(iter(self._lines))
            line = self._lines.pop(owner)
            turn = line.popleft()
            if line:
                self._lines[owner] = line
            if not turn.done():
                turn.set_result(None)
                return True
        return False
