"""The steps on stored responses that must be atomic, in Lua.

``KEYS[2]`` is always the tenant's index of responses by the time at which they expire, ``KEYS[3]`` the hash of their
sizes, whose field '' is the sum. Expired responses are uncounted first, at most 1000 at a time.
"""

from typing import Final

from memloop_state.guard import UNCHANGED
from memloop_state.owners import OWNERS

PRELUDE: Final = (
    OWNERS
    + """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function drop(id)
  local size = redis.call('HGET', KEYS[3], id)
  redis.call('ZREM', KEYS[2], id)
  if size then
    redis.call('HDEL', KEYS[3], id)
    if redis.call('HINCRBY', KEYS[3], '', -size) <= 0 then redis.call('HDEL', KEYS[3], '') end
  end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1000)) do drop(id) end
local function erasures(key, names)
  local found = {}
  for _, name in ipairs(names) do table.insert(found, redis.call('HGET', key, name) or '-') end
  return table.concat(found, ' ')
end
"""
)

ROOM: Final = (
    PRELUDE
    + """
-- KEYS[1] marks of the user; ARGV: id, bytes, quota, lease ms, scopes…. Takes the bytes of a response that is being
-- made out of the quota, until it is kept or the lease ends. Returns 'full', or 'ok' and the user's erasures so far
if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1 then return {'ok', erasures(KEYS[1], {unpack(ARGV, 5)})} end
if (tonumber(redis.call('HGET', KEYS[3], '')) or 0) + ARGV[2] > tonumber(ARGV[3]) then return {'full'} end
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[4]), ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[3], '', ARGV[2])
for place = 2, 3 do
  if redis.call('PTTL', KEYS[place]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[place], ARGV[4]) end
end
return {'ok', erasures(KEYS[1], {unpack(ARGV, 5)})}
"""
)

GIVE_BACK: Final = (
    PRELUDE
    + """
-- KEYS[1] record; ARGV: id. Gives back the bytes of a response that was not kept
if redis.call('EXISTS', KEYS[1]) == 0 then drop(ARGV[1]) end
return 1
"""
)

KEEP: Final = (
    PRELUDE
    + UNCHANGED
    + """
-- KEYS[1] marks of the user, KEYS[4] record, KEYS[5..] those of its owners, then the policies by which it was redacted,
-- if that is to be checked. ARGV: id, keep ms, bytes, quota, erasures at the beginning, its owners, the guard of the
-- policies…, number of scopes, scopes…, the record's fields…
local guard = 7 + 4 * ARGV[6]
local at = guard + 2 + ARGV[guard + 1]
local scopes, fields = {unpack(ARGV, at + 1, at + ARGV[at])}, {unpack(ARGV, at + 1 + ARGV[at])}
if has_changed(KEYS[5 + 3 * ARGV[6]], guard) then return 'changed' end
if erasures(KEYS[1], scopes) ~= ARGV[5] then return 'erased' end
drop(ARGV[1])
if (tonumber(redis.call('HGET', KEYS[3], '')) or 0) + ARGV[3] > tonumber(ARGV[4]) then return 'full' end
local ends = string.format('%.0f', now + ARGV[2])
redis.call('HSET', KEYS[4], unpack(fields))
redis.call('ZADD', KEYS[2], ends, ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
redis.call('HINCRBY', KEYS[3], '', ARGV[3])
for place = 2, 4 do redis.call('PEXPIRE', KEYS[place], ARGV[2]) end
own(5, 6, KEYS[4])
end_with_records(KEYS[4])
return 'kept'
"""
)

CONTINUE: Final = (
    PRELUDE
    + """
-- KEYS[4] record; ARGV: id, keep ms. Returns the record's fields, and keeps it for longer
local found = redis.call('HMGET', KEYS[4], 'previous', 'input', 'response')
if not found[1] then return {} end
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), ARGV[1])
for place = 2, 4 do redis.call('PEXPIRE', KEYS[place], ARGV[2]) end
end_with_records(KEYS[4])
return found
"""
)

DELETE: Final = (
    PRELUDE
    + """
-- KEYS[1] record; ARGV: id. Returns how many were deleted
drop(ARGV[1])
disown(KEYS[1])
return redis.call('DEL', KEYS[1])
"""
)

END: Final = (
    PRELUDE
    + """
-- KEYS[1] record; ARGV: id, response, quota (0 = not looked at). Replaces a response: ended, full or gone
local before = redis.call('HGET', KEYS[1], 'response')
if not before then return 'gone' end
local more, quota = #ARGV[2] - #before, tonumber(ARGV[3])
if quota > 0 and (tonumber(redis.call('HGET', KEYS[3], '')) or 0) + more > quota then return 'full' end
redis.call('HSET', KEYS[1], 'response', ARGV[2])
redis.call('HINCRBY', KEYS[3], ARGV[1], more)
redis.call('HINCRBY', KEYS[3], '', more)
return 'ended'
"""
)
