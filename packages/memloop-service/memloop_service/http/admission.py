"""Limits what is worked on: the requests and body bytes of this process at once, in two lanes, and a request's time.

Interactive requests (chat, completions, memory) may fill the whole process. Batch requests (long reads, each of many
engine calls) get a share of it, so that an interactive request always finds room. One tenant gets a share of
everything, for the same reason. Nothing queues here: a request without room is refused before its body is read. A body
counts as it arrives; an announced size takes no room. The service limits the size of a single body.

A client's own deadline is in its headers; work that outlasts it stops. So does work whose client has disconnected.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Literal, TypeAlias

from starlette.types import Receive

from memloop.wire.errors import InvalidRequest, Overloaded, RateLimited, Timeout

Lane: TypeAlias = Literal["interactive", "batch"]
Limit: TypeAlias = Literal["process", "tenant"]
_RETRY_AFTER_S: Final[Mapping[Lane, float]] = {"interactive": 1.0, "batch": 5.0}


@dataclass(frozen=True, slots=True)
class Capacity:
    """The most requests, batch requests and body bytes of the process, or of one tenant."""

    requests: int
    batch: int
    body_bytes: int


@dataclass(slots=True, eq=False)
class Use:
    """The requests and body bytes in progress, of the process or of one tenant."""

    requests: int = 0
    batch: int = 0
    """As many of the requests are in the batch lane."""
    body_bytes: int = 0

    def has_room(self, capacity: Capacity, held: "Held", body_bytes: int) -> bool:
        """Return whether this fits too, with a body of that size."""
        return (
            self.requests + held.requests <= capacity.requests
            and self.batch + held.batch <= capacity.batch
            and self.body_bytes + body_bytes <= capacity.body_bytes
        )

    def add(self, held: "Held", times: int = 1) -> None:
        """Add to what is in progress; -1 times takes it away."""
        self.requests += times * held.requests
        self.batch += times * held.batch
        self.body_bytes += times * held.body_bytes


class Held:
    """The room that one request holds while the block runs."""

    def __init__(
        self, admission: "Admission", lane: Lane, tenant: str, *, requests: int, body_bytes: int, announced: int
    ) -> None:
        self._admission = admission
        self._announced = announced
        self.lane: Lane = lane
        self.tenant = tenant
        self.requests = requests
        self.batch = int(lane == "batch")
        self.body_bytes = body_bytes

    def take(self, size: int) -> None:
        """Take room for more bytes of the body. Raises RateLimited, Overloaded."""
        self._admission.take(self, size)

    def __enter__(self) -> "Held":
        self._admission.enter(self, self._announced)
        return self

    def __exit__(self, *_: object) -> None:
        self._admission.leave(self)


class Admission:
    """Counts the work in progress and refuses requests that do not fit. ``on_refused`` gets the limit that refused."""

    def __init__(self, capacity: Capacity, share: Capacity, on_refused: Callable[[Limit], None]) -> None:
        self._capacity = capacity
        self._share = share
        self._on_refused = on_refused
        self._process = Use()
        self._tenants: dict[str, Use] = {}

    def room(self, lane: Lane, *, tenant: str, body_bytes: int = 0, announced: int = 0) -> Held:
        """Hold room for one request in a block.

        ``body_bytes`` are taken immediately; ``announced`` bytes must fit then and are taken as they arrive. The block
        raises Overloaded (503) when the process is full, RateLimited (429) when the tenant has used its share.
        """
        return Held(self, lane, tenant, requests=1, body_bytes=body_bytes, announced=announced)

    def batch_part(self, *, tenant: str) -> Held:
        """Count an admitted interactive request as a batch request in a block. Raises as ``room`` does."""
        return Held(self, "batch", tenant, requests=0, body_bytes=0, announced=0)

    def enter(self, held: Held, announced: int) -> None:
        """Admit a request. Raises RateLimited, Overloaded."""
        body_bytes = max(held.body_bytes, announced)
        if not self._process.has_room(self._capacity, held, body_bytes):
            raise self._full(held.lane)
        use = self._tenants.get(held.tenant)
        if use is not None and not use.has_room(self._share, held, body_bytes):
            raise self._over_share(held.lane)
        self._process.add(held)
        self._tenants.setdefault(held.tenant, Use()).add(held)

    def leave(self, held: Held) -> None:
        """Give back what an admitted request holds."""
        self._process.add(held, -1)
        use = self._tenants[held.tenant]
        use.add(held, -1)
        if not (use.requests or use.batch):
            del self._tenants[held.tenant]

    def take(self, held: Held, size: int) -> None:
        """Take room for more bytes of an admitted request. Raises RateLimited, Overloaded."""
        if self._process.body_bytes + size > self._capacity.body_bytes:
            raise self._full(held.lane)
        use = self._tenants[held.tenant]
        if use.body_bytes + size > self._share.body_bytes:
            raise self._over_share(held.lane)
        held.body_bytes += size
        self._process.body_bytes += size
        use.body_bytes += size

    def active(self, lane: Lane) -> int:
        used = self._process
        return used.batch if lane == "batch" else used.requests - used.batch

    @property
    def body_bytes(self) -> int:
        return self._process.body_bytes

    @property
    def fullness(self) -> float:
        """Return the load from 0 to 1: the larger share of requests or bytes."""
        used, capacity = self._process, self._capacity
        return max(used.requests / capacity.requests, used.body_bytes / capacity.body_bytes)

    def _full(self, lane: Lane) -> Overloaded:
        self._on_refused("process")
        return Overloaded("This process is full. Try again soon.", retry_after_s=_RETRY_AFTER_S[lane])

    def _over_share(self, lane: Lane) -> RateLimited:
        self._on_refused("tenant")
        message = "Your requests under way take all of this process that one tenant may have. Try again soon."
        return RateLimited(message, code="tenant_full", retry_after_s=_RETRY_AFTER_S[lane])


HEADER: Final = "x-request-timeout"
_SDK_HEADERS: Final = ("x-stainless-timeout", "x-stainless-read-timeout")
"""What OpenAI's clients send of their own accord: the whole time (Node), the longest silence (Python)."""


class DeadlinePassed(Timeout, code="deadline_exceeded"):
    """The client's deadline passed before the answer began."""


def deadline_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the client waits: the shortest of its headers, or None without any.

    Raises InvalidRequest if our own header is not a number of seconds.
    """
    timeouts = [_seconds(given) for name in _SDK_HEADERS if (given := headers.get(name))]
    if (given := headers.get(HEADER)) is not None:
        timeouts.append(_seconds(given))
        if timeouts[-1] is None:
            raise InvalidRequest("X-Request-Timeout must be a number of seconds above 0.", param="X-Request-Timeout")
    return min((seconds for seconds in timeouts if seconds is not None), default=None)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


class ClientGone(Exception):
    """The client closed its connection and cannot receive the answer."""


class Awaited:
    """Cancels the block when the client disconnects, and raises ClientGone. Other cancellations pass through.

    After ``seconds``, if given, it raises DeadlinePassed. The request's body must have been read.
    """

    def __init__(self, receive: Receive, *, seconds: float | None = None) -> None:
        self._receive = receive
        self._seconds = seconds
        self._scope = asyncio.timeout(seconds)
        self._is_gone = False

    async def __aenter__(self) -> None:
        await self._scope.__aenter__()
        self._watching = asyncio.create_task(self._watch())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watching.cancel()  # or it would end a scope that is over; it holds nothing that needs its end
        del self._watching  # its traceback refers to this scope
        try:
            await self._scope.__aexit__(kind, error, traceback)
        except TimeoutError as late:
            if self._is_gone:
                raise ClientGone from None
            message = f"The engine's answer did not begin within the {self._seconds:g} s that you wait."
            raise DeadlinePassed(message) from late

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._scope.expired():  # the deadline came first, and ends the block
            self._is_gone = True
            self._scope.reschedule(asyncio.get_running_loop().time())
