"""The agreement of all stores, in Redis: which collection is in service, who is alive, and whose copy runs.

One partition keeps the record (``lua/service.lua``). Every partition has a gate, which writes and erasures pass in the
steps that they run anyway (``lua/gate.lua``). docs/decisions/0053-stores-agree-in-redis.md has the argument.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from memloop_state.link import State
from memloop_state.steps import Partitions, Steps

STORE_LEASE_S: Final = 3.0
"""A store that has not looked for so long counts as dead."""
FRESH_S: Final = 2.0
"""A store that has not looked for so long answers no more. Shorter than the lease by what a clock may be off."""
COPY_LEASE_S: Final = 5.0
SETTLES_MS: Final = 2500
"""Longer than ``FRESH_S``."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A collection and the embedding model that made it."""

    name: str
    model: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Copying:
    """A copy under way. ``decided``: its end is certain and comes into force. ``lapsed``: its store is dead."""

    id: str
    target: Serving
    decided: bool
    lapsed: bool


@dataclass(frozen=True, slots=True)
class Service:
    """The record. ``gen`` changes with every collection that is put in service; ``job`` is the newest, as JSON."""

    gen: str
    serving: Serving
    copy: Copying | None
    job: str


@dataclass(frozen=True, slots=True)
class Peer:
    """A store that is alive: the generation that it works on, the copy whose target it has prepared."""

    name: str
    gen: str
    prepared: str


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of all stores; ``service`` is None before the first one."""

    service: Service | None
    peers: Sequence[Peer]


class ServiceRecord:
    """Reads and changes the agreement. ``site`` names the place of the collections.

    ``settles_ms``: how long erasures wait after a swap, until every store works on the new collection or answers no
    more.

    Every method raises ``Unavailable`` when Redis cannot be reached.
    """

    def __init__(self, link: State, site: str, *, settles_ms: int = SETTLES_MS) -> None:
        parts = Partitions(link).partitions
        self._gates = [[part.root] for part in parts]
        self._home = [parts[0].key("service", site), parts[0].key("stores", site)]
        self._record = Steps(link, "service")
        self._gate_steps = Steps(link, "gate")
        self.site = site
        self._settles_ms = settles_ms

    async def look(self, store: str, *, gen: str, prepared: str) -> Seen:
        """The state of all stores; renews the lease of this one, if it has a name."""
        args = (store, gen, prepared, int(STORE_LEASE_S * 1000))
        record, lapsed, alive = await self._at_home("look", *args)
        peers = [Peer(name, *text.split(" ")[1:]) for name, text in _pairs(alive).items()]
        return Seen(_service(_pairs(record), lapsed=bool(lapsed)), peers)

    async def leave(self, store: str) -> None:
        await self._at_home("leave", store)

    async def put(self, serving: Serving, *, instead_of: str) -> None:
        """Put a collection in service where that generation, or none, is in service."""
        await self._at_home("put", instead_of, serving.name, serving.model, serving.dimension)

    async def align(self, gen: str, *, ended: str = "", settles: bool = False) -> None:
        """Open every gate for a generation, after the ``ended`` copy or where a gate has none or an earlier one.

        ``settles``: erasures wait until no store can answer from the collection before.
        """
        await self._at_gates("align", gen, ended, self._settles_ms if settles else 0)

    async def claim(self, gen: str, copy: str, target: Serving, job: str) -> bool:
        """Take the lease of a copy. False while another one is under way."""
        args = (gen, copy, target.name, target.model, target.dimension, int(COPY_LEASE_S * 1000), job)
        return bool(await self._at_home("claim", *args))

    async def renew(self, copy: str, job: str) -> bool:
        """Renew the lease of a copy. False when it was abandoned."""
        return bool(await self._at_home("renew", copy, int(COPY_LEASE_S * 1000), job))

    async def note(self, copy: str, gen: str) -> Sequence[Sequence[str]] | None:
        """Have changes noted from now on. Those under way at each gate, by name; None where a gate refuses."""
        replies = await self._at_gates("note", copy, gen)
        return None if None in replies else replies

    async def remaining(self, names: Sequence[Sequence[str]]) -> int:
        """How many of the changes of each gate are still under way."""
        replies = await asyncio.gather(
            *(
                self._gate_steps("remaining", keys, [self.site, *some])
                for keys, some in zip(self._gates, names, strict=True)
            )
        )
        return sum(replies)

    async def take(self, limit: int) -> Sequence[str]:
        """At most so many notes of each gate, which are taken out."""
        return list(chain(*await self._at_gates("take", limit)))

    async def shut(self, copy: str, *, shut: bool) -> bool:
        """Shut every gate, on replicas too, or open it again. False where a gate does not have this copy."""
        return all(await self._at_gates("shut", copy, "1" if shut else "", acknowledged=shut))

    async def under_way(self, copy: str) -> int | None:
        """How many changes are under way at gates that are shut for the copy; None where one is not."""
        counts: list[int | None] = await self._at_gates("under_way", copy)
        return None if None in counts else sum(count for count in counts if count is not None)

    async def decide(self, copy: str) -> bool:
        """Put the target of a copy in service, on replicas too. False when its end is decided already."""
        return bool(await self._record("decide", self._home, [copy], acknowledged=True))

    async def abandon(self, copy: str, *, own: bool) -> None:
        """Decide that a copy fails: one's own, or one whose lease is over."""
        await self._at_home("abandon", copy, int(own))

    async def clear(self, copy: str, job: str = "") -> None:
        """Forget a copy whose end is in force."""
        await self._at_home("clear", copy, job)

    async def _at_home(self, step: str, *args: str | int) -> Any:
        return await self._record(step, self._home, args)

    async def _at_gates(self, step: str, *args: str | int, acknowledged: bool = False) -> list[Any]:
        runs = (self._gate_steps(step, keys, [self.site, *args], acknowledged=acknowledged) for keys in self._gates)
        return await asyncio.gather(*runs)


def _service(fields: dict[str, str], *, lapsed: bool) -> Service | None:
    if "gen" not in fields:
        return None
    serving, copying = Serving(fields["name"], fields["model"], int(fields["dimension"])), None
    if "copy" in fields:
        target = Serving(fields["target"], fields["target_model"], int(fields["target_dimension"]))
        copying = Copying(fields["copy"], target, decided="decided" in fields, lapsed=lapsed)
    return Service(fields["gen"], serving, copying, fields.get("job", ""))


def _pairs(flat: Sequence[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
