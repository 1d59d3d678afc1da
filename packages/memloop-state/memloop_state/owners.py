"""Names the users whose data a record holds, and orders what is stored against their erasures.

A record of a user has an entry in the user's *index*, made in the step that stores it. The same step compares the
user's *marks*: the fencing token of the last erasure of each scope. Work notes the newest token when it begins, so a
record whose work began before an erasure is refused after it, and one that was stored before it is found in the index.
Every partition has marks and indexes of its own: a record is in the same slot as they are, wherever it lies.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import orjson
from redis.asyncio import Redis

from memloop.wire.memory import Namespace, Scope
from memloop_state.link import redis_errors
from memloop_state.partitions import Partition, Partitions
from memloop_state.scripts import Script, lua, text

MARK_KEEP_MS: Final = 7 * 24 * 3600 * 1000
"""How long an erasure is remembered: longer than any work takes."""

FROM_NOW: Final = 2**53
"""What work began with that is done in one step: no erasure came before it."""

OWNERS: Final = lua("owners")

_MARK: Final = """
-- KEYS: a user's marks; ARGV: scope, token, keep ms. A newer erasure's mark stays
local token = redis.call('HGET', KEYS[1], ARGV[1])
if not token or tonumber(token) < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
"""

_LISTED: Final = """
-- KEYS: the tenant's owners. Returns the users with records; those without any more are taken out
local found, users = redis.call('HGETALL', KEYS[1]), {}
for place = 1, #found, 2 do
  if redis.call('EXISTS', found[place + 1]) == 1 then
    users[#users + 1] = found[place]
  else
    redis.call('HDEL', KEYS[1], found[place])
  end
end
return users
"""


_LEAVE: Final = """
-- KEYS: the tenant's owners, a user's index; ARGV: user. Forgets the name of a user without records
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1
"""


@dataclass(frozen=True, slots=True)
class Owner:
    """A user's namespace whose data a record holds, and the newest fencing token when the work on it began.

    ``began`` may also be ``"="`` and the user's marks of then, as ``Table.reserve`` returns them.
    """

    namespace: Namespace
    began: int | str


def owned_keys(at: Partition, owners: Sequence[Owner]) -> list[str]:
    """Return the keys that ``OWNERS`` takes for a record in that partition."""
    spaces = [owner.namespace for owner in owners]
    return [key for one in spaces for key in (at.erased(one.lane()), at.owned(one.lane()), at.owners(one.tenant))]


def owned_args(owners: Sequence[Owner], *, kind: str, record_id: str) -> list[str | int]:
    """Return the arguments that ``owners_at`` reads; without a ``kind`` the record is compared and not noted."""
    args: list[str | int] = [len(owners)]
    for owner in owners:
        one = owner.namespace
        entry = orjson.dumps([kind, record_id, one.agent_id, one.run_id]).decode() if kind else ""
        args += [str(owner.began), " ".join(one.scopes()), one.user_id, entry]
    return args


class Owners:
    """The owners in one Redis. Methods raise Unavailable when it is unreachable."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._partitions = Partitions(redis, Partition)
        self._mark = Script(redis, _MARK, acknowledged=True)
        self._listed = Script(redis, _LISTED)
        self._leave = Script(redis, _LEAVE)

    async def mark(self, namespace: Namespace, token: int) -> None:
        """Note an erasure everywhere: from now on no record is stored whose work began before its token."""
        lane, args = namespace.lane(), [namespace.scopes()[-1], token, MARK_KEEP_MS]
        await asyncio.gather(*(self._mark([part.erased(lane)], args) for part in self._partitions.partitions))

    async def records(self, namespace: Namespace) -> list[tuple[str, str]]:
        """Return kind and id of all records of the namespace."""
        found: list[tuple[str, str]] = []
        for part in self._partitions.partitions:
            with redis_errors():
                entries = cast("list[object]", await self._redis.hvals(part.owned(namespace.lane())))
            for entry in (line for lines in entries for line in text(lines).split("\n") if line):
                kind, record_id, agent, run = orjson.loads(entry)
                if namespace.agent_id in (None, agent) and namespace.run_id in (None, run):
                    found.append((kind, record_id))
        return list(dict.fromkeys(found))

    async def leave(self, namespace: Namespace) -> None:
        """Forget the user's name wherever no record of the user is left."""
        for part in self._partitions.partitions:
            await self._leave([part.owners(namespace.tenant), part.owned(namespace.lane())], [namespace.user_id])

    async def users(self, scope: Scope) -> list[str]:
        """Return the users of the tenant with records of the scope's agent and run, each once."""
        found: dict[str, None] = {}
        for part in self._partitions.partitions:
            found |= dict.fromkeys(await self._listed.rows([part.owners(scope.tenant)], []))
        if scope.agent_id is None and scope.run_id is None:
            return list(found)
        spaces = [Namespace(**scope.model_dump() | {"user_id": user}) for user in found]
        return [one.user_id for one in spaces if await self.records(one)]
