"""One replica: its connections, its load, its breaker, and whether it takes new requests."""

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from yarl import URL

from memloop.patience import patient
from memloop.wire.errors import ConnectRefused, DependencyError, MemloopError, Unreachable
from memloop_clients.balancing.breaker import Breaker
from memloop_clients.balancing.rules import Balancing
from memloop_clients.transport import Origin, Peer, Request, Timeouts

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
                await self.breaker.admit(_answered)

    async def probe(self) -> None:
        """Raise Unavailable unless it answers, with any status."""
        try:
            async with patient(_PROBE_S):
                (await self.origin.send(_PROBE)).close()
        except TimeoutError as error:
            raise Unreachable(f"the {self._peer.name} does not answer") from error

    async def close(self) -> None:
        """Keep no connection longer than the request that it serves."""
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


async def _answered() -> None:
    """The probe of a replica that has just answered."""
