"""Sends each request to one of the replicas of a server, and follows which replicas there are.

Two loops run from the first request until the client closes: one resolves the names again, the other asks every replica
whether it takes new requests. A replica that is not ready gets nothing new; its running requests go on. If none is
ready, all are asked. A request goes to another replica only if no connection came about, so that nothing was sent.
"""

import asyncio
import contextvars
import itertools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias

from yarl import URL

from memloop.wire.errors import Unreachable
from memloop_clients.balancing.choice import Choice
from memloop_clients.balancing.replica import Balancing, CircuitOpen, Place, Replica, State
from memloop_clients.balancing.resolving import has_a_name, is_srv, plain, replicas_at
from memloop_clients.transport import Peer, RawResponse, Request

_LOG = logging.getLogger(__name__)
_RESOLVE_S: Final = 5.0
_MOST_TRIES: Final = 5
_MOST_NUMBERS: Final = 16
_MORE: Final = "more"
_TAKES_NO_WORK: Final = 503
LoadState: TypeAlias = State | Literal["gone"]
_STATES: Final[tuple[LoadState, ...]] = ("ready", "unready", "ejected", "gone")
"""The best first."""
ProxyOf: TypeAlias = Callable[[URL], URL | None]


@dataclass(frozen=True, slots=True)
class ReplicaLoad:
    """The load of a replica, by its number; ``more`` stands for all from the sixteenth on.

    ``requests`` counts those that all replicas of this number got so far.
    """

    replica: str
    state: LoadState
    outstanding: int
    requests: int


def balancer_of(base: URL, peer: Peer, rules: Balancing, *, proxy_of: ProxyOf) -> "Balancer | None":
    """Return a balancer over the base URL and the further ones of the rules; None if they can only be one server."""
    urls = (base, *map(URL, rules.also))
    balancer = Balancer(urls, peer, rules, proxy_of=proxy_of)
    return balancer if balancer.follows or rules.suspends_one else None


class Balancer:
    """Balances over the replicas at some base URLs, whose names may have several addresses each.

    ``follows`` is false for a single server that stays the same.
    """

    def __init__(self, urls: Sequence[URL], peer: Peer, rules: Balancing, *, proxy_of: ProxyOf) -> None:
        self._urls = urls
        self._peer = peer
        self._rules = rules
        self._proxy_of = proxy_of
        self._choice = Choice()
        self._replicas: Sequence[Replica] = ()
        self.follows = len(urls) > 1 or self._expands(urls[0])
        if not self.follows:
            self._replicas = [self._new(Place(urls[0], None, proxy_of(urls[0])), 0)]
        self._beginning = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None
        self._requests: Counter[str] = Counter()
        self._last: dict[URL, Sequence[Place]] = {}
        self._unresolved: set[URL] = set()

    async def send(self, request: Request, affinity: str | None) -> RawResponse:
        """Send a request to a replica. Raises CircuitOpen when all are ejected, and as ``Origin.send`` does.

        A GET asks about a single server, perhaps while that starts: it opens no circuit, and its answer closes one.
        """
        if self.follows and (self._following is None or self._following.done()):
            async with self._beginning:
                if self._following is None or self._following.done():
                    await self._resolve()
                    self._following = asyncio.create_task(
                        self._followed(), context=contextvars.Context()
                    )  # no request's
        tried: list[Replica] = []
        while True:
            candidates = self._candidates(tried)
            only = len(self._replicas) == 1
            asks = only and self._rules.suspends_one and request.method == "GET"
            replica = candidates[0] if only else self._choice.of(candidates, affinity)
            breaker = replica.breaker
            if breaker.failures and only and self._rules.suspends_one and not asks:
                await breaker.admit(replica.probe)
            replica.outstanding += 1
            self._requests[_label(replica)] += 1
            try:
                answer = await replica.origin.send(request, ended=partial(_ended, replica))
            except BaseException as error:
                _ended(replica)
                breaker.failed(error, counts=not asks)
                tried.append(replica)
                if not isinstance(error, Unreachable) or len(tried) == _MOST_TRIES or not self._left(tried):
                    raise
            else:
                if breaker.failures:
                    breaker.answered()
                if answer.status == _TAKES_NO_WORK and len(self._replicas) > 1:
                    replica.ready = False  # until it is examined
                return answer

    def loads(self) -> Sequence[ReplicaLoad]:
        """Return the load by number, also of replicas that are gone; none of a single server that stays the same."""
        if not self.follows:
            return ()
        present: dict[str, list[Replica]] = {label: [] for label in sorted(self._requests)}
        for replica in self._replicas:
            present.setdefault(_label(replica), []).append(replica)
        return [
            ReplicaLoad(
                label,
                next(state for state in _STATES if state == "gone" or any(one.state == state for one in replicas)),
                sum(replica.outstanding for replica in replicas),
                self._requests[label],
            )
            for label, replicas in present.items()
        ]

    def is_suspended(self) -> bool:
        """Return whether no replica may get a request."""
        return bool(self._replicas or self._requests) and all(each.breaker.is_open() for each in self._replicas)

    async def close(self) -> None:
        """Stop following the replicas and close the idle connections."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait({self._following})
        await asyncio.gather(*(replica.close() for replica in self._replicas))

    def _candidates(self, tried: Collection[Replica]) -> Sequence[Replica]:
        """Return the replicas that may get a request. Raises CircuitOpen when there is none."""
        if len(self._replicas) == 1:
            return self._replicas
        if not self._replicas:
            raise Unreachable(f"The name of the {self._peer.name} has no replicas.")
        left = self._left(tried)
        if not left:
            code = f"{self._peer.name.rpartition(' ')[2]}_circuit_open"
            raise CircuitOpen(f"No replica of the {self._peer.name} can be reached.", code=code, retry_after_s=1.0)
        return left

    def _left(self, tried: Collection[Replica]) -> Sequence[Replica]:
        """Return the ready replicas, or all while none is ready, without those that are ejected or were tried."""
        closed = [replica for replica in self._replicas if not replica.breaker.is_open()]
        usable = [replica for replica in closed if replica.ready] or closed
        left = [replica for replica in usable if replica not in tried] if tried else usable
        # Those of the lowest priority, and of weight 0 only while it has no other
        priority = min((replica.place.priority for replica in left), default=0)
        serving = [replica for replica in left if replica.place.priority == priority]
        return [replica for replica in serving if replica.place.weight] or serving

    async def _followed(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self._resolve, self._rules.resolve_every_s))
            group.create_task(self._repeat(lambda: self._examine(self._replicas), self._rules.examine_every_s))

    async def _repeat(self, work: Callable[[], Awaitable[None]], every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            await work()

    async def _examine(self, replicas: Sequence[Replica]) -> None:
        """Examine them at the same time. A single replica gets every request, whatever its state."""
        if len(replicas) > 1:
            await asyncio.gather(*(replica.examine() for replica in replicas))

    async def _resolve(self) -> None:
        """Resolve the names. A replica is taken into service after it was examined, and retired when it is gone."""
        found = await asyncio.gather(*(self._places(url) for url in self._urls))
        places = list(dict.fromkeys(place for some in found for place in some))
        before = {replica.place: replica for replica in self._replicas}
        for place in places:
            if place in before:
                before[place].place = place  # its weight may be another
        if places == list(before):
            return
        gone = [replica for place, replica in before.items() if place not in places]
        taken = {replica.number for replica in before.values()} - {replica.number for replica in gone}
        numbers = (number for number in itertools.count() if number not in taken)
        after = [before.get(place) or self._new(place, next(numbers)) for place in places]
        await self._examine(after)
        self._replicas = after
        for replica in gone:
            self._choice.forget(replica)
            await replica.close()
        _LOG.info("%s replicas: %s", self._peer.name, ", ".join(f"{r.number} at {r.place}" for r in after))

    async def _places(self, url: URL) -> Sequence[Place]:
        """Return where the replicas of one URL are; as before when its name cannot be resolved."""
        proxy = self._proxy_of(url)
        if not self._expands(url):
            return [Place(url, None, proxy)]
        try:
            async with asyncio.timeout(_RESOLVE_S):
                if is_srv(url):
                    records, base = await self._rules.endpoints(url.host or ""), plain(url)
                    self._last[url] = [
                        Place(base.with_port(each.port), each.address, None, each.priority, each.weight)
                        for each in records
                    ]
                else:
                    addresses = await self._rules.resolve(url.host or "", url.port or 0)
                    self._last[url] = [Place(url, address, None) for address in replicas_at(addresses)]
        except (OSError, UnicodeError) as error:
            self._rules.on_unresolved()
            if url not in self._unresolved:
                _LOG.warning("%s: %s cannot be resolved: %s", self._peer.name, url.host, error or "no answer in time")
            self._unresolved.add(url)
        else:
            self._unresolved.discard(url)
        return self._last.get(url) or ([] if is_srv(url) else [Place(url, None, proxy)])

    def _expands(self, url: URL) -> bool:
        """Return whether the URL may be that of several replicas: a proxy resolves the names of its URLs itself."""
        return is_srv(url) or (self._rules.several and has_a_name(url) and self._proxy_of(url) is None)

    def _new(self, place: Place, number: int) -> Replica:
        return Replica(place, self._peer, self._rules, number=number)


def _ended(replica: Replica) -> None:
    replica.outstanding -= 1


def _label(replica: Replica) -> str:
    return str(replica.number) if replica.number < _MOST_NUMBERS else _MORE
