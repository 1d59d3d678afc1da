"""The atomic steps of a lane queue as Lua scripts. ``gateway.queue.lanes`` documents their invariants.

KEYS begin with the ten of a lane (``lane_at`` in ``gateway.queue.turns``), followed by a script's own. The caller
passes every key, and all keys of one call are in one cluster slot. A lock's value is ``{fencing token}|{ticket}``.
A token is the previous one plus one, or the time in ms if that is larger: it grows even after Redis lost its data.
The scripts use commands of Redis 6.2 only.

A full Redis refuses the first command of a script that may need memory, but no later one (Redis manual, "Lua API",
``allow-oom``). Scripts that work on queued jobs therefore begin with a command that needs none, and a full Redis
drains. A new job begins with a command that needs memory, and is refused.
"""

from gateway.queue.entering import END_INDEX, ENTER, LIST_IN
from gateway.queue.turns import LANE
from memloop_state.guard import UNCHANGED
from memloop_state.link import LUA_CLOCK
from memloop_state.owners import OWNERS

_HEAD = (
    LANE
    + """
local q = lane_at(1)
local function new_token(fence)
  local token, now = redis.call('INCR', fence), now_ms()
  if token < now then
    token = now
    redis.call('SET', fence, whole(now))
  end
  return whole(token)
end
-- Notes that something has left the lane: see docs/decisions/0068-queue-and-store-are-read-at-once.md
local function note_change(key)
  redis.call('SET', key, whole(now_ms()), 'PX', 60000)
end
local function drop(group, ticket)
  redis.call('XACK', q.stream, group, ticket)
  redis.call('XDEL', q.stream, ticket)
end
-- Gives back the bytes that a job holds of its tenant's quota
local function release(job)
  local tenant, bytes = unpack(redis.call('HMGET', job, 'tenant', 'bytes'))
  if not bytes then return end
  redis.call('HDEL', job, 'bytes')
  if redis.call('HINCRBY', q.bytes, tenant or '', -bytes) <= 0 then redis.call('HDEL', q.bytes, tenant or '') end
end
"""
)

SUBMIT = LANE + ENTER + "return enter(1, 1)"

SUBMIT_GUARDED = (
    LANE
    + ENTER
    + UNCHANGED
    + """
-- KEYS[1] the guard's hash, then the job's keys; ARGV: the guard's, then the job's. Returns -3 if the hash has changed
if guard_changed(KEYS[1], 1) then return -3 end
return enter(2, 3 + ARGV[2])
"""
)

BEGIN = (
    _HEAD
    + """
-- KEYS[11] fence, KEYS[12] the job that the ticket names as the lane's head
-- ARGV: group, ticket, lane, lease ms, the id of that job
local group, ticket, lane, lease, job = ARGV[1], ARGV[2], ARGV[3], ARGV[4], KEYS[12]
local head = redis.call('LINDEX', q.list, 0)
if not head then
  redis.call('ZREM', q.delayed, lane)
  drop(group, ticket)
  return {'empty'}
end
local due = redis.call('ZSCORE', q.delayed, lane)
if due and tonumber(due) > now_ms() then
  drop(group, ticket)
  return {'later'}
end
local held = redis.call('GET', q.lock)
if held then
  local owner = string.match(held, '|(.*)$')
  if owner ~= ticket then
    drop(group, ticket)
    if owner == 'erase' then redis.call('ZADD', q.delayed, now_ms() + 500, lane) end
    return {'held'}
  end
end
if head ~= ARGV[5] then return {'head', head} end
if redis.call('EXISTS', job) == 0 then
  redis.call('LPOP', q.list)
  redis.call('ZREM', q.open, head)
  return {'head', redis.call('LINDEX', q.list, 0) or head}
end
redis.call('ZREM', q.delayed, lane)
local token = new_token(KEYS[11])
redis.call('SET', q.lock, token .. '|' .. ticket, 'PX', lease)
redis.call('HINCRBY', job, 'starts', 1)
redis.call('HSET', job, 'status', 'in_progress')
local found = redis.call('HMGET', job, 'starts', 'failures', 'outages', 'tenant', 'request_id', 'traceparent')
withdraw(q, found[4] or '', lane, head)
return {'run', token, found[1], found[2] or 0, found[3] or 0, found[4] or '', found[5] or '', found[6] or ''}
"""
)

BEAT = (
    _HEAD
    + """
-- KEYS[11] job; ARGV: group, ticket, mine, lease ms, consumer
if redis.call('GET', q.lock) ~= ARGV[3] or redis.call('EXISTS', KEYS[11]) == 0 then return 'lost' end
redis.call('PEXPIRE', q.lock, ARGV[4])
redis.call('XCLAIM', q.stream, ARGV[1], ARGV[5], 0, ARGV[2], 'JUSTID')
if redis.call('HEXISTS', KEYS[11], 'cancel') == 1 then return 'cancel' end
return 'held'
"""
)

FINISH = (
    _HEAD
    + END_INDEX
    + OWNERS
    + """
-- KEYS[11] job, KEYS[12] journal, KEYS[13] dead letters, KEYS[14] change
-- ARGV: group, ticket, mine, lane, id, status, record, keep ms (0 = keep indefinitely), error ('' = done, else a dead
-- letter), 1 when payload and journal stay as long as the record, tenant, 1 when the index ends with its jobs
if redis.call('GET', q.lock) ~= ARGV[3] then return 0 end
redis.call('DEL', q.lock)
local keeps_bytes = ARGV[9] ~= '' and ARGV[8] ~= '0' and ARGV[10] == '1'
if redis.call('EXISTS', KEYS[11]) == 1 then
  redis.call('HSET', KEYS[11], 'status', ARGV[6], 'record', ARGV[7])
  if ARGV[9] ~= '' then
    local tenant, index, bytes = unpack(redis.call('HMGET', KEYS[11], 'tenant', 'index', 'bytes'))
    local dead = redis.call('XADD', KEYS[13], '*', 'job', ARGV[5], 'lane', ARGV[4], 'error', ARGV[9],
      'tenant', tenant or '', 'index', index or '', 'bytes', keeps_bytes and bytes or 0)
    redis.call('HSET', KEYS[11], 'dead', dead)
  end
  if not keeps_bytes then release(KEYS[11]) end
  if ARGV[10] == '0' then
    redis.call('HDEL', KEYS[11], 'payload')
    redis.call('DEL', KEYS[12])
  end
  if ARGV[8] == '0' then
    redis.call('PERSIST', KEYS[12])
  else
    redis.call('PEXPIRE', KEYS[11], ARGV[8])
    redis.call('PEXPIRE', KEYS[12], ARGV[8])
    local index = redis.call('HGET', KEYS[11], 'index')
    if ARGV[12] == '1' and index then end_index(index, KEYS[11], ARGV[5]) end
    end_with_records(KEYS[11])
  end
end
redis.call('LREM', q.list, 1, ARGV[5])
redis.call('ZREM', q.open, ARGV[5])
note_change(KEYS[14])
drop(ARGV[1], ARGV[2])
pass_on(q, ARGV[11], ARGV[4])
return 1
"""
)

RETRY = (
    _HEAD
    + """
-- KEYS[11] job; ARGV: group, ticket, mine, lane, counter, delay ms, error
if redis.call('GET', q.lock) ~= ARGV[3] then return 0 end
redis.call('DEL', q.lock)
if redis.call('EXISTS', KEYS[11]) == 1 then
  redis.call('HINCRBY', KEYS[11], ARGV[5], 1)
  redis.call('HSET', KEYS[11], 'status', 'queued', 'error', ARGV[7])
end
redis.call('ZADD', q.delayed, now_ms() + ARGV[6], ARGV[4])
drop(ARGV[1], ARGV[2])
return 1
"""
)

ABANDON = (
    _HEAD
    + """
-- KEYS[11] job; ARGV: group, ticket, mine, lane, tenant
local held = redis.call('GET', q.lock)
if held and held ~= ARGV[3] and string.match(held, '|(.*)$') == ARGV[2] then return 0 end
if held == ARGV[3] then
  redis.call('DEL', q.lock)
  if redis.call('EXISTS', KEYS[11]) == 1 then
    redis.call('HINCRBY', KEYS[11], 'starts', -1)
    redis.call('HSET', KEYS[11], 'status', 'queued')
  end
end
drop(ARGV[1], ARGV[2])
pass_on(q, ARGV[5], ARGV[4])
return 1
"""
)

DUE = (
    LUA_CLOCK
    + """
-- KEYS: delayed sets of all tiers. Returns the ms until the next lane's delay ends (empty: no lane waits), then the
-- lanes whose delay has ended: at most 100 per tier; the 101st is then the next
local now, soonest, lanes = now_ms(), '', {}
for _, delayed in ipairs(KEYS) do
  local found = redis.call('ZRANGE', delayed, 0, 100, 'WITHSCORES')
  for i = 1, #found, 2 do
    local wait = math.max(0, found[i + 1] - now)
    if wait == 0 and i < 200 then lanes[#lanes + 1] = found[i]
    elseif soonest == '' or wait < soonest then soonest = wait end
  end
end
return {soonest, unpack(lanes)}
"""
)

PROMOTE = (
    _HEAD
    + """
-- ARGV: lane, tenant. Lets a lane whose delay has ended wait for a worker, unless another worker did
local due = redis.call('ZSCORE', q.delayed, ARGV[1])
if not due or tonumber(due) > now_ms() then return 0 end
redis.call('ZREM', q.delayed, ARGV[1])
pass_on(q, ARGV[2], ARGV[1])
return 1
"""
)

TAKE_LANE = (
    _HEAD
    + """
-- KEYS[11] fence, KEYS[12] erasures, KEYS[13] change; ARGV: lease ms, force (1 or 0), the erased scope, keep ms
if redis.call('EXISTS', q.lock) == 1 and ARGV[2] == '0' then return '0' end
redis.call('DEL', q.lock)
local token = new_token(KEYS[11])
redis.call('SET', q.lock, token .. '|erase', 'PX', ARGV[1])
redis.call('HSET', KEYS[12], ARGV[3], token)
redis.call('PEXPIRE', KEYS[12], ARGV[4])
note_change(KEYS[13])
return token
"""
)

TAKE_IDLE_LANE = (
    _HEAD
    + UNCHANGED
    + """
-- KEYS[11] fence, KEYS[12] the guard's hash (may be missing); ARGV: lease ms, then the guard's
-- Returns '-3' if the hash has changed, '0' if the lane is busy
if guard_changed(KEYS[12], 2) then return '-3' end
if redis.call('EXISTS', q.lock) == 1 or redis.call('LLEN', q.list) > 0 then return '0' end
local token = new_token(KEYS[11])
redis.call('SET', q.lock, token .. '|erase', 'PX', ARGV[1])
return token
"""
)

RECORD = (
    _HEAD
    + LIST_IN
    + END_INDEX
    + """
-- KEYS[11] job, KEYS[12] index; ARGV: mine, lane, id, created ms, keep ms, tenant, then the hash's pairs
-- Writes nothing and returns 0 when the lane was lost: an erasure that took it over must find no record afterwards
if redis.call('GET', q.lock) ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[11], unpack(ARGV, 7))
redis.call('PEXPIRE', KEYS[11], ARGV[5])
list_in(KEYS[12], KEYS[11], ARGV[3], ARGV[4])
end_index(KEYS[12], KEYS[11], ARGV[3])
redis.call('DEL', q.lock)
pass_on(q, ARGV[6], ARGV[2])
return 1
"""
)

LEAVE_LANE = (
    _HEAD
    + """
-- ARGV: mine, lane, tenant
if redis.call('GET', q.lock) ~= ARGV[1] then return 0 end
redis.call('DEL', q.lock)
pass_on(q, ARGV[3], ARGV[2])
return 1
"""
)

FORGET = (
    _HEAD
    + OWNERS
    + """
-- KEYS[11] job, KEYS[12] journal, KEYS[13] index, KEYS[14] dead letters, KEYS[15..] more to delete; ARGV: id, lane
local status, dead, tenant = unpack(redis.call('HMGET', KEYS[11], 'status', 'dead', 'tenant'))
redis.call('LREM', q.list, 0, ARGV[1])
redis.call('ZREM', q.open, ARGV[1])
redis.call('ZREM', KEYS[13], ARGV[1])
disown(KEYS[11])
if dead then redis.call('XDEL', KEYS[14], dead) end
release(KEYS[11])
redis.call('DEL', KEYS[11], KEYS[12], unpack(KEYS, 15))
withdraw(q, tenant or '', ARGV[2], ARGV[1])
pass_on(q, tenant or '', ARGV[2])
return status
"""
)

REQUEUE = (
    _HEAD
    + """
-- KEYS[11] job, KEYS[12] journal, KEYS[13] dead letters; ARGV: id, lane, record, created ms, then of a job that ended
-- well: its new payload, the status and the record that it must have ('' = a dead letter, with its own payload).
-- A dead letter keeps decisions and stored results in the journal; its replies are deleted.
local dead, payload, tenant, index, status, record =
  unpack(redis.call('HMGET', KEYS[11], 'dead', 'payload', 'tenant', 'index', 'status', 'record'))
if ARGV[5] ~= '' then
  if status ~= ARGV[6] or record ~= ARGV[7] then return 0 end
  redis.call('DEL', KEYS[12])
  redis.call('HSET', KEYS[11], 'payload', ARGV[5])
elseif not dead or not payload then
  return 0
end
if index then redis.call('PERSIST', index) end
for _, field in ipairs(redis.call('HKEYS', KEYS[12])) do
  if string.find(field, '^call:') then redis.call('HDEL', KEYS[12], field) end
end
if dead then redis.call('XDEL', KEYS[13], dead) end
redis.call('PERSIST', KEYS[11])
redis.call('PERSIST', KEYS[12])
redis.call('HDEL', KEYS[11], 'dead', 'starts', 'failures', 'outages', 'error')
redis.call('HSET', KEYS[11], 'status', 'queued', 'record', ARGV[3])
redis.call('ZADD', q.open, ARGV[4], ARGV[1])
redis.call('RPUSH', q.list, ARGV[1])
pass_on(q, tenant or '', ARGV[2])
return 1
"""
)

CANCEL = (
    _HEAD
    + ENTER
    + """
-- KEYS[11] job, KEYS[12] journal, KEYS[13..] a job to queue when this one never ran (may be missing);
-- ARGV: id, lane, record of a job that never ran, keep ms, then the arguments of the other job
local status, tenant = unpack(redis.call('HMGET', KEYS[11], 'status', 'tenant'))
if not status then return 'gone' end
if status ~= 'queued' and status ~= 'in_progress' then return 'done' end
if status == 'in_progress' or redis.call('EXISTS', q.lock) == 1 then
  redis.call('HSET', KEYS[11], 'cancel', 1)
  return 'asked'
end
redis.call('HSET', KEYS[11], 'status', 'cancelled', 'record', ARGV[3])
redis.call('HDEL', KEYS[11], 'payload')
release(KEYS[11])
redis.call('PEXPIRE', KEYS[11], ARGV[4])
end_with_records(KEYS[11])
redis.call('DEL', KEYS[12])
redis.call('LREM', q.list, 0, ARGV[1])
redis.call('ZREM', q.open, ARGV[1])
withdraw(q, tenant or '', ARGV[2], ARGV[1])
pass_on(q, tenant or '', ARGV[2])
if KEYS[13] then enter(13, 5) end
return 'cancelled'
"""
)
