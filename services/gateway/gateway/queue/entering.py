"""How a job enters a lane queue, in Lua: its size against the quota, its beginning against erasures, its index.

Work that takes long notes the newest fencing token when it begins. An erasure has a newer one, so a job whose work
began before the erasure is refused after it (docs/decisions/0048-erase-wins.md).
"""

from memloop_state.link import LUA_CLOCK
from memloop_state.owners import OWNERS

LIST_IN = """
-- Lists a job of that key and id. At every sixteenth one in a long index, the oldest that are deleted are taken out
local function list_in(index, job, id, at)
  redis.call('ZADD', index, at, id)
  redis.call('PERSIST', index)
  local length = redis.call('ZCARD', index)
  if length <= 100 or length % 16 > 0 then return end
  local jobs = string.sub(job, 1, -#id - 1)
  for _, old in ipairs(redis.call('ZRANGE', index, 0, 31)) do
    if redis.call('EXISTS', jobs .. old) == 0 then redis.call('ZREM', index, old) end
  end
end
"""

END_INDEX = """
-- Lets an index end with the last of its jobs. One with a job that has no end, or with very many, stays
local function end_index(index, job, id)
  if redis.call('ZCARD', index) > 200 then return end
  local jobs, longest = string.sub(job, 1, -#id - 1), 0
  for _, listed in ipairs(redis.call('ZRANGE', index, 0, -1)) do
    local left = redis.call('PTTL', jobs .. listed)
    if left == -1 then return end
    longest = math.max(longest, left)
  end
  if longest > 0 then redis.call('PEXPIRE', index, longest) end
end
"""

BEGAN = (
    LUA_CLOCK
    + """
-- A number that no token so far exceeds and every later one does, as text
local function began(fence)
  return string.format('%.0f', math.max(tonumber(redis.call('GET', fence) or 0), now_ms() - 1))
end
"""
)

NEWEST = BEGAN + "return began(KEYS[1])"

ENTER = (
    LIST_IN
    + OWNERS
    + """
-- Enters a new job. KEYS[k..]: the ten of its lane, then job, index, those of its owners, events (may be missing);
-- ARGV[a..]: id, lane, now, first event ('' = none), tenant, quota of the tenant's bytes (0 = none), the most jobs of
-- its index (0 = any), its owners, then the hash's pairs. Returns -1 over quota, -2 if one of its owners was erased
-- since the work began, -4 if the index is full
local function enter(k, a)
  local q, job, index, id, now, tenant = lane_at(k), KEYS[k + 10], KEYS[k + 11], ARGV[a], ARGV[a + 2], ARGV[a + 4]
  local quota, bytes, most, owners = tonumber(ARGV[a + 5]), 1024, tonumber(ARGV[a + 6]), ARGV[a + 7]
  if redis.call('EXISTS', job) == 1 then return 0 end
  if is_erased(k + 12, owners_at(ARGV, a + 7)) then return -2 end
  if most > 0 and redis.call('ZCARD', index) >= most then return -4 end
  local first = a + 8 + 4 * owners
  for i = first, #ARGV do bytes = bytes + #ARGV[i] end
  local held = tonumber(redis.call('HGET', q.bytes, tenant) or 0)
  if quota > 0 and held > 0 and held + bytes > quota then return -1 end
  redis.call('HSET', job, unpack(ARGV, first))
  redis.call('HSET', job, 'bytes', bytes, 'index', index)
  redis.call('HINCRBY', q.bytes, tenant, bytes)
  redis.call('ZADD', q.open, now, id)
  if ARGV[a + 3] ~= '' then redis.call('XADD', KEYS[k + 12 + 3 * owners], '0-1', 'event', ARGV[a + 3]) end
  redis.call('RPUSH', q.list, id)
  pass_on(q, tenant, ARGV[a + 1])
  list_in(index, job, id, now)
  own(k + 12, owners_at(ARGV, a + 7), job)
  return 1
end
"""
)
