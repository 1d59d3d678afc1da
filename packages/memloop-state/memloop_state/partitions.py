"""Places keys and ids in Redis so that keys which change together are in one cluster slot.

A key that begins ``memloop:{tag}`` is in the tag's slot (``link``). A *partition* is all keys under one tag: a
single server has one, a cluster twelve. The place of a name, 0 to 255, decides its partition, and an id holds its place
as two hex digits: ``evt_7f…`` is at place 0x7f.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memloop.wire.joining import joined
from memloop_state.link import State, place_of, tags_of

_ID = re.compile(r"[a-z]+[_-]([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class Partition:
    """The keys under one tag."""

    tag: str

    def key(self, kind: str, *names: str) -> str:
        """Name a key of this partition."""
        return f"memloop:{{{self.tag}}}:{':'.join((kind, *names))}"

    def hidden(self, kind: str, *names: str) -> str:
        """Name a key by a digest of names that a client chooses, which it does not show."""
        return self.key(kind, digest(*names))

    def job(self, job_id: str) -> str:
        """Name the hash of a job: payload, record, status, counters."""
        return self.key("job", job_id)

    def events(self, job_id: str) -> str:
        """Name the stream of a job's events, such as a read's."""
        return self.key("read-events", job_id)

    def listed(self, kind: str, *of: str) -> str:
        """Name the sorted set of a tenant's, or a user's, jobs of a kind, by time."""
        return self.key(kind, *of)


class Partitions:
    """All partitions of one Redis: one for a single server, twelve for a cluster."""

    def __init__(self, redis: State) -> None:
        self.partitions: Sequence[Partition] = tuple(Partition(tag) for tag in tags_of(redis))

    def of_name(self, name: str) -> Partition:
        """Return the partition of a lane's or a tenant's name."""
        return self._at(place_of(name))

    def of_id(self, placed: str) -> Partition:
        """Return an id's partition. An id of a foreign format maps to the first one, where nothing has that id."""
        found = _ID.match(placed)
        return self._at(int(found[1], 16) if found else 0)

    def job(self, job_id: str) -> str:
        """Name the hash of a job."""
        return self.of_id(job_id).job(job_id)

    def _at(self, place: int) -> Partition:
        return self.partitions[place % len(self.partitions)]


def id_at(prefix: str, name: str, digits: str) -> str:
    """Make an id at the place of a name from 32 hex digits, of which 30 are kept. ``prefix`` ends in ``_`` or ``-``."""
    return f"{prefix}{place_of(name):02x}{digits[2:]}"


def id_beside(prefix: str, other_id: str, digits: str) -> str:
    """Make an id at the place of another id from 32 hex digits, of which 30 are kept."""
    found = _ID.match(other_id)
    return f"{prefix}{found[1] if found else '00'}{digits[2:]}"


@lru_cache(maxsize=4096)
def digest(*names: str) -> str:
    """Return a short name for texts that a client chooses, for use in a key."""
    return hashlib.sha256(joined(*names).encode("utf-8", "surrogatepass")).hexdigest()[:32]
