"""Places keys and ids in Redis so that keys which change together are in one cluster slot.

A key that begins ``memloop:{tag}`` is in the tag's slot (``link``). A *partition* is all keys under one tag: a
single server has one, a cluster twelve. The place of a name, 0 to 255, decides its partition, and an id holds its place
as two hex digits: ``evt_7f…`` is at place 0x7f. Each slice names its own keys in a subclass of ``Partition``.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from memloop_state.link import State, place_of, tags_of

_ID = re.compile(r"[a-z]+[_-]([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class Partition:
    """The keys under one tag."""

    tag: str

    def key(self, *parts: str) -> str:
        """Name a key of this partition."""
        return f"memloop:{{{self.tag}}}:{':'.join(parts)}"

    def erased(self, lane: str) -> str:
        """Name the hash of a user's erased scopes, each with the token of its last erasure. It outlives the user."""
        return self.key("erased", name_digest(lane))

    def owned(self, lane: str) -> str:
        """Name the hash of the records here that hold a user's data, by key."""
        return self.key("owned", name_digest(lane))

    def owners(self, tenant: str) -> str:
        """Name the set of a tenant's users with such records here, by the time at which their last one ends."""
        return self.key("owners", tenant)


P_co = TypeVar("P_co", bound=Partition, covariant=True)


class Partitions(Generic[P_co]):
    """All partitions of one Redis, as a slice names their keys: one for a single server, twelve for a cluster."""

    def __init__(self, redis: State, kind: type[P_co]) -> None:
        self.partitions: Sequence[P_co] = tuple(kind(tag) for tag in tags_of(redis))

    def of_name(self, name: str) -> P_co:
        """Return the partition of a lane's or a tenant's name."""
        return self._at(place_of(name))

    def of_id(self, placed: str) -> P_co:
        """Return an id's partition. An id of a foreign format maps to the first one, where nothing has that id."""
        found = _ID.match(placed)
        return self._at(int(found[1], 16) if found else 0)

    def _at(self, place: int) -> P_co:
        return self.partitions[place % len(self.partitions)]


def id_at(prefix: str, name: str, digits: str) -> str:
    """Make an id at the place of a name from 32 hex digits, of which 30 are kept. ``prefix`` ends in ``_`` or ``-``."""
    return f"{prefix}{place_of(name):02x}{digits[2:]}"


def id_beside(prefix: str, other_id: str, digits: str) -> str:
    """Make an id at the place of another id from 32 hex digits, of which 30 are kept."""
    found = _ID.match(other_id)
    return f"{prefix}{found[1] if found else '00'}{digits[2:]}"


def name_digest(name: str) -> str:
    """Return the SHA-256 (hex) of a name that a client chooses, for use in a key."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
