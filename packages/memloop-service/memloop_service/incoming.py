"""A request's body as it comes in: limited, counted, and in time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.types import Message, Receive

from memloop.patience import patient_until
from memloop.wire.errors import SlowBody, TooLarge

INCOMING: Final = "memloop.incoming"
"""Where a request's scope holds its body."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """A client may take ``timeout_s`` to send a body of up to ``max_bytes``, and a second more per ``bytes_per_s``."""

    max_bytes: int
    timeout_s: float
    bytes_per_s: int


class IncomingBody:
    """Receives a body. Whoever sets ``count`` gets the size of each piece, and may raise an error to refuse it."""

    def __init__(self, receive: Receive, limits: BodyLimits) -> None:
        self.is_whole = False
        self.count: Callable[[int], None] | None = None
        self._receive = receive
        self._limits = limits
        self._received = 0
        self._waited_s = 0.0

    def check(self, size: int) -> None:
        """Raise TooLarge for a body of that size."""
        if size > self._limits.max_bytes:
            raise TooLarge(f"the body is over the limit of {self._limits.max_bytes} bytes")

    async def next(self) -> Message:
        """Return the next piece, or the client's leaving. Raises TooLarge, SlowBody, and what ``count`` raises.

        Only waiting for the client counts, not what is done with the body in between.
        """
        limits, loop = self._limits, asyncio.get_running_loop()
        began = loop.time()
        left_s = limits.timeout_s + self._received / limits.bytes_per_s - self._waited_s
        try:
            async with patient_until(began + left_s):
                message = await self._receive()
        except TimeoutError:
            late = f"{self._received} bytes of the body came in {limits.timeout_s + self._waited_s:.0f} s."
            raise SlowBody(late) from None
        finally:
            self._waited_s += loop.time() - began
        size = len(message.get("body", b""))
        self._received += size
        self.is_whole = not message.get("more_body", False)
        self.check(self._received)
        if size and self.count is not None:
            self.count(size)
        return message
