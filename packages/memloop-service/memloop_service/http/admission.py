"""Limits the requests and body bytes that this process works on at once, in two lanes.

Interactive requests (chat, completions, memory) may fill the whole process. Batch requests (long reads, each of many
engine calls) get a share of it, so that an interactive request always finds room. One tenant gets a share of
everything, for the same reason. Nothing queues here: a request without room is refused before its body is read. A body
counts as it arrives; an announced size takes no room. The service limits the size of a single body.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from memloop.wire.errors import Overloaded, RateLimited

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

    active: Counter[Lane] = field(default_factory=Counter[Lane])
    body_bytes: int = 0

    def has_room(self, capacity: Capacity, lane: Lane, body_bytes: int) -> bool:
        """Return whether one more request fits, with a body of that size."""
        return (
            self.active.total() < capacity.requests
            and (lane != "batch" or self.active["batch"] < capacity.batch)
            and self.body_bytes + body_bytes <= capacity.body_bytes
        )


class Held:
    """The room that one request holds."""

    def __init__(self, admission: "Admission", lane: Lane, tenant: str | None) -> None:
        self._admission = admission
        self.lane: Lane = lane
        self.tenant = tenant
        self.body_bytes = 0

    def take(self, size: int) -> None:
        """Take room for more bytes of the body. Raises RateLimited, Overloaded."""
        self._admission.take(self, size)


class Admission:
    """Counts the work in progress and refuses requests that do not fit. ``on_refused`` gets the limit that refused."""

    def __init__(self, capacity: Capacity, share: Capacity, on_refused: Callable[[Limit], None]) -> None:
        self._capacity = capacity
        self._share = share
        self._on_refused = on_refused
        self._process = Use()
        self._tenants: dict[str, Use] = {}

    @contextmanager
    def room(
        self, lane: Lane, *, tenant: str | None = None, body_bytes: int = 0, announced: int = 0
    ) -> Generator[Held]:
        """Hold room for one request; a part of an admitted request names no tenant.

        ``body_bytes`` are taken immediately; ``announced`` bytes must fit now and are taken as they arrive. Raises
        Overloaded (503) when the process is full, RateLimited (429) when the tenant has used its share.
        """
        held = Held(self, lane, tenant)
        self._check(held, max(body_bytes, announced))
        used = self._used(held)
        for use in used:
            use.active[lane] += 1
        try:
            self._add(held, body_bytes)
            yield held
        finally:
            for use in used:
                use.active[lane] -= 1
                use.body_bytes -= held.body_bytes
            if tenant is not None and not self._tenants[tenant].active.total():
                del self._tenants[tenant]

    def take(self, held: Held, size: int) -> None:
        """Take room for more bytes of an admitted request. Raises RateLimited, Overloaded."""
        if self._process.body_bytes + size > self._capacity.body_bytes:
            raise self._full(held.lane)
        if held.tenant is not None and self._tenants[held.tenant].body_bytes + size > self._share.body_bytes:
            raise self._over_share(held.lane)
        self._add(held, size)

    def active(self, lane: Lane) -> int:
        """Return the lane's requests in progress."""
        return self._process.active[lane]

    @property
    def body_bytes(self) -> int:
        """Return the body bytes in progress."""
        return self._process.body_bytes

    @property
    def fullness(self) -> float:
        """Return the load from 0 to 1: the larger share of requests or bytes."""
        used, capacity = self._process, self._capacity
        return max(used.active.total() / capacity.requests, used.body_bytes / capacity.body_bytes)

    def _check(self, held: Held, body_bytes: int) -> None:
        if not self._process.has_room(self._capacity, held.lane, body_bytes):
            raise self._full(held.lane)
        use = None if held.tenant is None else self._tenants.get(held.tenant)
        if use is not None and not use.has_room(self._share, held.lane, body_bytes):
            raise self._over_share(held.lane)

    def _used(self, held: Held) -> tuple[Use, ...]:
        if held.tenant is None:
            return (self._process,)
        use = self._tenants.get(held.tenant)
        if use is None:
            use = self._tenants[held.tenant] = Use()
        return self._process, use

    def _add(self, held: Held, size: int) -> None:
        if not size:
            return
        held.body_bytes += size
        for use in self._used(held):
            use.body_bytes += size

    def _full(self, lane: Lane) -> Overloaded:
        self._on_refused("process")
        return Overloaded("This process is full. Try again soon.", retry_after_s=_RETRY_AFTER_S[lane])

    def _over_share(self, lane: Lane) -> RateLimited:
        self._on_refused("tenant")
        message = "Your requests under way take all of this process that one tenant may have. Try again soon."
        return RateLimited(message, code="tenant_full", retry_after_s=_RETRY_AFTER_S[lane])
