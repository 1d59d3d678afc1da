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
from memloop_state.scripts import Script, text

MARK_KEEP_MS: Final = 7 * 24 * 3600 * 1000
"""How long an erasure is remembered: longer than any work takes."""

OWNERS: Final = r"""
-- A record's owners. KEYS[k..]: of each owner the marks, the index, the tenant's owners; ARGV[a..]: how many owners,
-- then of each: the newest token when the work began, the scopes, the user, the entry in the index ('' = none is made)
local function is_erased(k, a)
  for owner = 0, ARGV[a] - 1 do
    for scope in string.gmatch(ARGV[a + 4 * owner + 2], '%S+') do
      local token = redis.call('HGET', KEYS[k + 3 * owner], scope)
      if token and tonumber(token) > tonumber(ARGV[a + 4 * owner + 1]) then return true end
    end
  end
end
-- Whether a text has a line
local function has_line(lines, line) return string.find('\n' .. lines .. '\n', '\n' .. line .. '\n', 1, true) end
-- Notes a record, which is a hash. At every sixteenth in an index, some that are gone are taken out
local function own(k, a, record)
  local indexes = redis.call('HGET', record, 'owned') or ''
  for owner = 0, ARGV[a] - 1 do
    local index, owners = KEYS[k + 3 * owner + 1], KEYS[k + 3 * owner + 2]
    local user, entry = ARGV[a + 4 * owner + 3], ARGV[a + 4 * owner + 4]
    if entry ~= '' then
      local entries = redis.call('HGET', index, record) or ''
      if not has_line(entries, entry) then redis.call('HSET', index, record, entry .. '\n' .. entries) end
      redis.call('PERSIST', index)
      redis.call('HSET', owners, user, index)
      if not has_line(indexes, index) then indexes = index .. '\n' .. indexes end
      if redis.call('HLEN', index) % 16 == 0 then
        for _, old in ipairs(redis.call('HRANDFIELD', index, 32)) do
          if redis.call('EXISTS', old) == 0 then redis.call('HDEL', index, old) end
        end
        local some = redis.call('HRANDFIELD', owners, 8, 'WITHVALUES')
        for place = 1, #some, 2 do
          if redis.call('EXISTS', some[place + 1]) == 0 then redis.call('HDEL', owners, some[place]) end
        end
      end
    end
  end
  if indexes ~= '' then redis.call('HSET', record, 'owned', indexes) end
end
local function indexes_of(record)
  return string.gmatch(redis.call('HGET', record, 'owned') or '', '%S+')
end
-- Takes a record that is deleted out of its owners' indexes
local function disown(record)
  for index in indexes_of(record) do redis.call('HDEL', index, record) end
end
-- Lets the indexes of a record end with their last record, unless one has no end or they are very long
local function end_with_records(record)
  for index in indexes_of(record) do
    local records, longest = redis.call('HLEN', index) <= 200 and redis.call('HKEYS', index) or {}, 0
    for _, one in ipairs(records) do
      local left = redis.call('PTTL', one)
      longest = left == -1 and math.huge or math.max(longest, left)
    end
    if longest > 0 and longest < math.huge then redis.call('PEXPIRE', index, longest) end
  end
end
"""

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
    """A user's namespace whose data a record holds, and the newest fencing token when the work on it began."""

    namespace: Namespace
    began: int


def owned_keys(at: Partition, owners: Sequence[Owner]) -> list[str]:
    """Return the keys that ``OWNERS`` takes for a record in that partition."""
    spaces = [owner.namespace for owner in owners]
    return [key for one in spaces for key in (at.erased(one.lane()), at.owned(one.lane()), at.owners(one.tenant))]


def owned_args(owners: Sequence[Owner], *, kind: str, record_id: str) -> list[str | int]:
    """Return the arguments that ``OWNERS`` takes; without a ``kind`` the record is compared and not noted."""
    args: list[str | int] = [len(owners)]
    for owner in owners:
        one = owner.namespace
        entry = orjson.dumps([kind, record_id, one.agent_id, one.run_id]).decode() if kind else ""
        args += [owner.began, " ".join(one.scopes()), one.user_id, entry]
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
