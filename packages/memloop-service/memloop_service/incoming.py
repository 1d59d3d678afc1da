"""A request's body as it comes in: limited, counted, in time, and unpacked."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.types import Message, Receive

from memloop.patience import patient_until
from memloop.wire.errors import SlowBody, TooLarge
from memloop_service.unpacking import Unpacking

INCOMING: Final = "memloop.incoming"
"""Where a request's scope holds its body."""
_NOTHING: Final[Message] = {"type": "http.request"}


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """A client may take ``timeout_s`` to send a body of up to ``max_bytes``, and a second more per ``bytes_per_s``."""

    max_bytes: int
    timeout_s: float
    bytes_per_s: int


class IncomingBody:
    """Receives a body. Whoever sets ``count`` gets the size of each piece, and may raise an error to refuse it.

    ``unpacking`` is that of a packed body; the limit is on its size before and after, and ``count`` gets the latter.
    """

    def __init__(self, receive: Receive, limits: BodyLimits) -> None:
        self.is_whole = False
        self.count: Callable[[int], None] | None = None
        self.unpacking: Unpacking | None = None
        self._receive = receive
        self._limits = limits
        self._received = self._size = 0
        self._is_all_here = False
        self._waited_s = 0.0

    def check(self, size: int) -> None:
        """Raise TooLarge for a body of that size."""
        if size > self._limits.max_bytes:
            raise TooLarge(f"the body is over the limit of {self._limits.max_bytes} bytes")

    async def next(self) -> Message:
        """Return the next piece, or the client's leaving.

        Raises TooLarge, SlowBody, InvalidRequest for a body that cannot be unpacked, and what ``count`` raises.
        """
        unpacking = self.unpacking
        if unpacking is None or not unpacking.has_more:
            message = await self._sent()
        else:
            await asyncio.sleep(0)  # a small body may unpack to a large one: others have their turn
            message = _NOTHING
        if unpacking is not None and message["type"] == "http.request":
            message = {**message, "body": unpacking.piece(message.get("body", b""))}
            message["more_body"] = unpacking.has_more or not self._is_all_here
            if not message["more_body"]:
                unpacking.end()
        size = len(message.get("body", b""))
        self._size += size
        self.is_whole = not message.get("more_body", False)
        self.check(self._size)
        if size and self.count is not None:
            self.count(size)
        return message

    async def _sent(self) -> Message:
        """Return the client's next message. Only waiting for it counts, not what is done with the body in between."""
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
        self._received += len(message.get("body", b""))
        self._is_all_here = not message.get("more_body", False)
        self.check(self._received)
        return message
