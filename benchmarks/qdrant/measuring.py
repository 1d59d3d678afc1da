"""Times the requests of a search on each peer in turn, so that a slower moment of the machine meets all of them."""

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.memory.corpus import question, user_of
from benchmarks.qdrant.peers import DIMENSION, TENANT, USERS, Peer
from memloop.wire.memory import Namespace
from memory_store.embedding.encoding import Bm25
from memory_store.items.documents import within
from memory_store.vectors.filters import Condition, Ids, all_of
from memory_store.vectors.port import Collection, Query, SparseVector

AT_ONCE = 16
_RANKED = 200
"""What a search ranks for an answer of ten."""
_READ = 20
"""What it reads at first."""
_WORDS = Bm25()


@dataclass(frozen=True, slots=True)
class Load:
    """What each peer is asked: in every round some requests one by one, then some rankings, 16 at once."""

    rounds: int = 5
    one_by_one: int = 50
    together: int = 320


@dataclass(slots=True)
class Times:
    """Milliseconds of single requests, and all rankings at once with their seconds.

    ``apart_ms``: ranking by a vector, then reading the best. ``together_ms``: both in one request, which reads all that
    it ranks.
    """

    rankings_ms: list[float] = field(default_factory=list[float])
    apart_ms: list[float] = field(default_factory=list[float])
    together_ms: list[float] = field(default_factory=list[float])
    done: int = 0
    took_s: float = 0.0

    @property
    def per_second(self) -> float:
        """Rankings a second, several at once."""
        return self.done / self.took_s


@dataclass(frozen=True, slots=True)
class _Asked:
    dense: tuple[float, ...]
    words: SparseVector
    where: Condition

    @property
    def queries(self) -> Sequence[Query]:
        return [self.dense, self.words]


async def measured(peers: Sequence[Peer], load: Load) -> Mapping[str, Times]:
    """Each peer in each round."""
    times = {peer.name: Times() for peer in peers}
    for peer in peers:
        await _rank(peer.collection, _asked(0).queries, _asked(0).where)
    for number in range(load.rounds):
        for peer in peers:
            await _one_by_one(peer.collection, _numbers(number, load.one_by_one), times[peer.name])
            await _at_once(peer.collection, _numbers(number, load.together), times[peer.name])
    return times


def _numbers(turn: int, count: int) -> range:
    """The questions of a round: no round asks those of another."""
    return range(turn * count, (turn + 1) * count)


async def _one_by_one(collection: Collection, numbers: range, times: Times) -> None:
    for number in numbers:
        asked = _asked(number)
        times.rankings_ms.append(await _ms(_rank(collection, asked.queries, asked.where)))
        times.apart_ms.append(await _ms(_apart(collection, asked)))
        times.together_ms.append(await _ms(collection.nearest(asked.dense, where=asked.where, limit=_RANKED)))


async def _at_once(collection: Collection, numbers: range, times: Times) -> None:
    waiting = iter([_asked(number) for number in numbers])

    async def ask() -> None:
        for asked in waiting:
            await _rank(collection, asked.queries, asked.where)

    began = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
    times.took_s += time.perf_counter() - began
    times.done += len(numbers)


async def _rank(collection: Collection, queries: Sequence[Query], where: Condition) -> list[str]:
    """The best by each query, as a search ranks."""
    found = await collection.rank(queries, where=where, corpus=where, limit=_RANKED)
    return [one.id for one in found[0]]


async def _apart(collection: Collection, asked: _Asked) -> None:
    """By the vector alone; then what a search reads of the best."""
    best = await _rank(collection, [asked.dense], asked.where)
    await collection.scroll(where=all_of([Ids(tuple(best[:_READ])), asked.where]), limit=_READ)


async def _ms(call: Awaitable[object]) -> float:
    began = time.perf_counter()
    await call
    return (time.perf_counter() - began) * 1000


def _asked(number: int) -> _Asked:
    drawn = np.random.default_rng(seed=number).standard_normal(DIMENSION)
    dense = tuple(float(one) for one in drawn / np.linalg.norm(drawn))
    where = within(Namespace(tenant=TENANT, user_id=user_of(number, users=USERS)))
    return _Asked(dense, _WORDS.query(question(number)), where)
