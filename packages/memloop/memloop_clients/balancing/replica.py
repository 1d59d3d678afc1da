"""One replica: its connections, its load, its circuit breaker, and whether it takes new requests.

After several failures in a row the circuit opens and requests are refused at once for a while. Then one request probes
the server while the others are still refused; if the server answers, the circuit closes. A failure is a connection that
cannot be opened or is lost before the answer begins, or a silence longer than the read timeout.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from yarl import URL

from memloop.chores import patient
from memloop.wire.errors import ConnectRefused, DependencyError, MemloopError, Timeout, Unavailable, Unreachable
from memloop_clients.balancing.resolving import Endpoint, Endpoints, Resolve, system_addresses
from memloop_clients.transport import Origin, Peer, Request, Timeouts


async def system_endpoints(name: str) -> Sequence[Endpoint]:
    """Resolve by the name servers and search list of ``/etc/resolv.conf``. Raises OSError."""
    from memloop_clients.balancing.lookup import by_the_system  # dnspython is slow to import

    return await by_the_system(name)


@dataclass(frozen=True, slots=True)
class Balancing:
    """How a client balances.

    ``also`` are base URLs of further replicas. ``ready_path`` below a server's root answers 503 while it takes no new
    requests; ``ready_port`` is the port of that path, if it is another one. Names are resolved every
    ``resolve_every_s`` and readiness is read every ``examine_every_s`` seconds, for at most ``examine_s``. A replica
    is ejected for ``open_s`` seconds after ``failures`` in a row. With ``suspends_one`` so is a server without other
    replicas, until it answers a probe. ``on_unresolved`` is called at each failed lookup. A name may stand for
    ``several`` servers.
    """

    also: tuple[str, ...] = ()
    ready_path: str = "health"
    ready_port: int | None = None
    several: bool = True
    resolve: Resolve = system_addresses
    endpoints: Endpoints = system_endpoints
    resolve_every_s: float = 2.0
    examine_every_s: float = 0.5
    examine_s: float = 1.0
    failures: int = 5
    open_s: float = 5.0
    suspends_one: bool = False
    on_unresolved: Callable[[], object] = lambda: None


class CircuitOpen(Unavailable, code="engine_circuit_open"):
    """A server was unreachable several times in a row; requests to it are suspended for a while."""


class Breaker:
    """Opens for ``open_s`` seconds after ``failures`` failures in a row; then one probe decides.

    ``peer`` names the server in errors.
    """

    def __init__(
        self, *, failures: int, open_s: float, clock: Callable[[], float] = time.monotonic, peer: str = "engine"
    ) -> None:
        self._most = failures
        self._open_s = open_s
        self._clock = clock
        self._peer = peer
        self.failures = 0
        """In a row."""
        self._opened_at: float | None = None
        self._probing = False

    def is_open(self) -> bool:
        """Return whether requests are suspended."""
        return self._opened_at is not None

    async def admit(self, probe: Callable[[], Awaitable[None]]) -> None:
        """Return once a call may be made; ``probe`` checks the server. Raises CircuitOpen, Unreachable."""
        if self._opened_at is None:
            return
        left_s = self._opened_at + self._open_s - self._clock()
        if left_s > 0 or self._probing:
            code = f"{self._peer.replace(' ', '_')}_circuit_open"
            raise CircuitOpen(f"The {self._peer} cannot be reached.", code=code, retry_after_s=max(1.0, left_s))
        self._probing = True
        try:
            with self.watching():
                await probe()
        finally:
            self._probing = False

    @contextmanager
    def watching(self) -> Generator[None]:
        """Update the circuit by an attempt. Any answer of the server, even an error, counts as a success."""
        try:
            yield
        except MemloopError as error:
            self.failed(error)
            raise
        self.answered()

    def failed(self, error: BaseException, *, counts: bool = True) -> None:
        """Update the circuit by what an attempt raised, as ``watching`` does."""
        if isinstance(error, MemloopError) and not isinstance(error, Unavailable | Timeout):
            self.answered()
        elif isinstance(error, MemloopError) and counts:
            self.failures += 1
            if self.failures >= self._most:
                self._opened_at = self._clock()

    def answered(self) -> None:
        """Close the circuit."""
        self.failures, self._opened_at = 0, None


_LOG = logging.getLogger(__name__)
_MOST_SILENCES: Final = 3
"""A busy server may be late once or twice."""
_TAKES_NO_WORK: Final = 500
"""From this status on."""

_PROBE: Final = Request("GET", "models")
_PROBE_S: Final = 3.0

State: TypeAlias = Literal["ready", "unready", "ejected"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replica is; ``address`` is an IP address of the URL's host, or None for the name itself.

    While one of a lower ``priority`` can be used it gets nothing. ``weight`` is its share among those of its priority.
    """

    url: URL
    address: str | None
    proxy: URL | None
    priority: int = field(default=0, compare=False)
    weight: int = field(default=1, compare=False)

    def __str__(self) -> str:
        return f"{self.address or self.url.host}:{self.url.port}"


class Replica:
    """One replica. ``number`` is the least that no other has, ``outstanding`` counts its running requests.

    ``turn`` is that of its last request. ``due`` grows by 1/weight with each request.
    """

    def __init__(self, place: Place, peer: Peer, rules: Balancing, *, number: int) -> None:
        self._peer = peer
        self.place = place
        self.number = number
        self.origin = Origin(place.url, peer, proxy=place.proxy, address=place.address)
        self.breaker = Breaker(failures=rules.failures, open_s=rules.open_s, peer=peer.name)
        self.ready = True
        self.outstanding = 0
        self.turn = 0
        self.due = 0.0
        self._name = f"{peer.name} replica {number} ({place})"
        at = place.url if rules.ready_port is None else place.url.with_port(rules.ready_port)
        self._examine_s = rules.examine_s
        limits = Timeouts(connect_s=rules.examine_s, read_s=rules.examine_s)
        quiet = Peer(peer.name, {}, limits, peer.error_of, peer.tls)
        self._readiness = Origin(at, quiet, proxy=place.proxy, address=place.address)
        self._look = Request("GET", rules.ready_path, beside=True)
        self._silences = _MOST_SILENCES - 1  # at first, no answer is enough

    @property
    def weight(self) -> int:
        """Its share of the requests, at least 1."""
        return max(self.place.weight, 1)

    @property
    def state(self) -> State:
        """Return whether it is ejected after failures, else whether it takes new requests."""
        return "ejected" if self.breaker.is_open() else "ready" if self.ready else "unready"

    async def examine(self) -> None:
        """Read its readiness. A ready one whose circuit was open for long enough gets requests again."""
        before, ready = self.ready, await self._is_ready()
        if ready is not None:
            self._silences, self.ready = 0, ready
        else:
            self._silences += 1
            self.ready = before and self._silences < _MOST_SILENCES
        if before and not self.ready:
            self.origin.retire()
        if before != self.ready:
            _LOG.info("%s %s", self._name, "takes requests" if self.ready else "gets no new requests")
        if self.ready:
            with suppress(DependencyError):
                await self.breaker.admit(lambda: asyncio.sleep(0))  # it has just answered

    async def probe(self) -> None:
        """Raise Unavailable unless it answers, with any status."""
        try:
            async with patient(_PROBE_S):
                (await self.origin.send(_PROBE)).close()
        except TimeoutError as error:
            raise Unreachable(f"the {self._peer.name} does not answer") from error

    async def close(self) -> None:
        await self.origin.close()
        await self._readiness.close()

    async def _is_ready(self) -> bool | None:
        """Return None when there is no answer."""
        try:
            async with patient(self._examine_s):
                answer = await self._readiness.send(self._look)
                try:
                    await answer.read()
                finally:
                    answer.close()
        except ConnectRefused:
            return False
        except (TimeoutError, MemloopError):
            return None
        return answer.status < _TAKES_NO_WORK
