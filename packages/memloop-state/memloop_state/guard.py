"""Lets a script work on what its caller has read from a hash before, unless the hash has changed since.

The caller thus needs no round trip to read it again. For one server only: in a cluster the hash may be in another slot.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memloop_state.scripts import lua

UNCHANGED: Final = lua("guard")


@dataclass(frozen=True, slots=True)
class Guard:
    """What some fields of a hash held when it was read, as a digest."""

    key: str
    names: Sequence[str]
    digest: str

    @property
    def args(self) -> list[str | int]:
        """The arguments of ``guard_changed``."""
        return [self.digest, len(self.names), *self.names]


UNGUARDED: Final[Sequence[str | int]] = ("", 0)
"""The arguments of ``guard_changed`` where nothing is asked."""


def guard_of(key: str, names: Sequence[str], known: Mapping[str, str]) -> Guard:
    """Return the guard of the fields ``names``, of which those in ``known`` exist."""
    values = (known[name].encode() if name in known else None for name in names)
    whole = b" ".join(b"-" if value is None else b"%d:%s" % (len(value), value) for value in values)
    return Guard(key, names, hashlib.sha1(whole, usedforsecurity=False).hexdigest())
