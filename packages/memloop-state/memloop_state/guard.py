"""Lets a script work on what its caller has read from a hash before, unless the hash has changed since.

The caller thus needs no round trip to read it again. For one server only: in a cluster the hash may be in another slot.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

UNCHANGED: Final = """
-- Whether a hash has changed. ARGV[a..]: the digest of some fields ('' = not asked), their number, their names
local function has_changed(key, a)
  if ARGV[a] == '' then return false end
  local values = redis.call('HMGET', key, unpack(ARGV, a + 2, a + 1 + ARGV[a + 1]))
  for i, value in ipairs(values) do values[i] = value and #value .. ':' .. value or '-' end
  return redis.sha1hex(table.concat(values, ' ')) ~= ARGV[a]
end
"""


@dataclass(frozen=True, slots=True)
class Guard:
    """What some fields of a hash held when it was read, as a digest."""

    key: str
    names: Sequence[str]
    digest: str

    @property
    def args(self) -> list[str | int]:
        """The arguments of ``has_changed``."""
        return [self.digest, len(self.names), *self.names]


UNGUARDED: Final[Sequence[str | int]] = ("", 0)
"""The arguments of ``has_changed`` where nothing is asked."""


def guard_of(key: str, names: Sequence[str], known: Mapping[str, str]) -> Guard:
    """Return the guard of the fields ``names``, of which those in ``known`` exist."""
    values = (known[name].encode() if name in known else None for name in names)
    whole = b" ".join(b"-" if value is None else b"%d:%s" % (len(value), value) for value in values)
    return Guard(key, names, hashlib.sha1(whole, usedforsecurity=False).hexdigest())
