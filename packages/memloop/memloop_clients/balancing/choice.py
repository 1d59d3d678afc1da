"""Chooses a replica for a request.

Requests without a key go to the replica with the fewest outstanding ones for its weight; among equals each gets its
weight's share in turn (Goyal, Vin and Cheng, "Start-Time Fair Queueing", SIGCOMM 1996). Requests with a key go where
their prefix is cached: to the key's own replica by rendezvous hashing, or where its last request went, as long as
that replica's load is at most a quarter above the mean. Sources: Thaler and Ravishankar, "Using Name-Based Mappings
to Increase Hit Rates" (IEEE/ACM Transactions on Networking, 1998); Mirrokni, Thorup and Zadimoghaddam, "Consistent
Hashing with Bounded Loads" (SODA 2018). Weights: Schindelhauer and Schomaker, "Weighted Distributed Hash Tables"
(SPAA 2005).
"""

import hashlib
import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from memloop_clients.balancing.replica import Replica

_ABOVE_THE_MEAN: Final = 1.25
_ALWAYS_ROOM: Final = 4
"""Outstanding requests that an engine serves as one batch: so few are never a reason to leave a warm cache."""
_MOST_KEYS: Final = 4096


class Choice:
    """Chooses replicas, and remembers where the last keys went."""

    def __init__(self) -> None:
        self._turn = 0
        self._now = 0.0
        self._homes: OrderedDict[str, Replica] = OrderedDict()

    def of(self, replicas: Sequence[Replica], affinity: str | None) -> Replica:
        """Return one of the replicas, of which there is at least one."""
        chosen = _least(replicas) if affinity is None else self._home(replicas, affinity)
        self._turn += 1
        chosen.turn = self._turn
        self._now = max(self._now, chosen.due)
        chosen.due = self._now + 1 / chosen.weight
        return chosen

    def forget(self, gone: Replica) -> None:
        """Drop the keys of a replica that is gone."""
        for key in [key for key, home in self._homes.items() if home is gone]:
            del self._homes[key]

    def _home(self, replicas: Sequence[Replica], key: str) -> Replica:
        home = self._homes.pop(key, None)
        # the outstanding requests for each unit of weight, the next request included
        mean = (sum(replica.outstanding for replica in replicas) + 1) / sum(replica.weight for replica in replicas)
        if home is None or home not in replicas or not _has_room(home, mean):
            ranked = sorted(replicas, key=lambda replica: _rank(key, replica), reverse=True)
            home = next((replica for replica in ranked if _has_room(replica, mean)), None) or _least(replicas)
        self._homes[key] = home
        if len(self._homes) > _MOST_KEYS:
            self._homes.popitem(last=False)
        return home


def _least(replicas: Sequence[Replica]) -> Replica:
    """Return the replica with the fewest outstanding requests for its weight; among equals, the next in turn."""
    return min(replicas, key=lambda replica: (replica.outstanding / replica.weight, replica.due, replica.turn))


def _has_room(replica: Replica, mean: float) -> bool:
    """Return whether a replica may have one more request."""
    return replica.outstanding < max(_ALWAYS_ROOM, math.ceil(_ABOVE_THE_MEAN * mean * replica.weight))


def _rank(key: str, replica: Replica) -> float:
    """Return the replica's rank for a key; it has the first rank for its weight's share of all keys."""
    digest = hashlib.blake2b(f"{key}\0{replica.place}".encode(), digest_size=8).digest()
    drawn = (int.from_bytes(digest) + 1) / (2**64 + 1)
    return -replica.weight / math.log(drawn) if drawn < 1 else math.inf
