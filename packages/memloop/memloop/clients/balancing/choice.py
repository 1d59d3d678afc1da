"""Chooses a replica for a request.

Requests without a key go to the replica with the fewest outstanding ones. Requests with a key go where their prefix is
cached: to the key's own replica by rendezvous hashing, or where its last request went, as long as that replica's load
is at most a quarter above the mean. Sources: Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates"
(IEEE/ACM Transactions on Networking, 1998); Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads"
(SODA 2018).
"""

import hashlib
import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from memloop.clients.balancing.replica import Replica

_ABOVE_THE_MEAN: Final = 1.25
_ALWAYS_ROOM: Final = 4
"""Outstanding requests that an engine serves as one batch: so few are never a reason to leave a warm cache."""
_MOST_KEYS: Final = 4096


class Choice:
    """Chooses replicas, and remembers where the last keys went."""

    def __init__(self) -> None:
        self._turn = 0
        self._homes: OrderedDict[str, Replica] = OrderedDict()

    def of(self, replicas: Sequence[Replica], affinity: str | None) -> Replica:
        """Return one of the replicas, of which there is at least one."""
        chosen = _least(replicas) if affinity is None else self._home(replicas, affinity)
        self._turn += 1
        chosen.turn = self._turn
        return chosen

    def forget(self, gone: Replica) -> None:
        """Drop the keys of a replica that is gone."""
        for key in [key for key, home in self._homes.items() if home is gone]:
            del self._homes[key]

    def _home(self, replicas: Sequence[Replica], key: str) -> Replica:
        home, room = self._homes.pop(key, None), _room(replicas)
        if home is None or home not in replicas or home.outstanding >= room:
            home = _first_with_room(replicas, key, room)
        self._homes[key] = home
        if len(self._homes) > _MOST_KEYS:
            self._homes.popitem(last=False)
        return home


def _first_with_room(replicas: Sequence[Replica], key: str, room: int) -> Replica:
    """Return the key's first replica with room; all keys have orders of their own."""
    ranked = sorted(replicas, key=lambda replica: _weight(key, replica), reverse=True)
    return next((replica for replica in ranked if replica.outstanding < room), None) or _least(replicas)


def _least(replicas: Sequence[Replica]) -> Replica:
    """Return the replica with the fewest outstanding requests; among equals, the one that waited longest."""
    return min(replicas, key=lambda replica: (replica.outstanding, replica.turn))


def _room(replicas: Sequence[Replica]) -> int:
    """Return the outstanding requests that a replica may have, the next one included."""
    running = sum(replica.outstanding for replica in replicas) + 1
    return max(_ALWAYS_ROOM, math.ceil(_ABOVE_THE_MEAN * running / len(replicas)))


def _weight(key: str, replica: Replica) -> bytes:
    return hashlib.blake2b(f"{key}\0{replica.place}".encode(), digest_size=8).digest()
