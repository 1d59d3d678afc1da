"""The atomic steps of a lane queue as Lua scripts. ``gateway.queue.lanes`` documents their invariants.

KEYS begin with stream, delayed, open, list, lock, followed by a script's own. The caller passes every key, and all keys
of one call are in one cluster slot. A lock's value is ``{fencing token}|{ticket}``.
A token is the previous one plus one, or the time in ms if that is larger: it grows even after Redis lost its data.
The scripts use commands of Redis 6.2 only.

A full Redis refuses the first command of a script that may need memory, but no later one (Redis manual, "Lua API",
``allow-oom``). Scripts that work on queued jobs therefore begin with a command that needs none, and a full Redis
drains. A new job begins with a command that needs memory, and is refused.
"""

_HEAD = """
local stream, delayed, open, list, lock = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function new_token(fence)
  local token, now = redis.call('INCR', fence), now_ms()
  if token < now then
    token = now
    redis.call('SET', fence, string.format('%.0f', now))
  end
  return string.format('%.0f', token)
end
local function drop(group, ticket)
  redis.call('XACK', stream, group, ticket)
  redis.call('XDEL', stream, ticket)
end
local function pass_on(lane)
  local head = redis.call('LINDEX', list, 0)
  if head and not redis.call('ZSCORE', delayed, lane) then
    redis.call('XADD', stream, '*', 'lane', lane, 'job', head)
  end
end
"""

LIST_IN = """
-- Returns 1, or 2 when the index is long enough to check it for deleted jobs
local function list_in(index, id, at)
  redis.call('ZADD', index, at, id)
  local length = redis.call('ZCARD', index)
  return (length > 100 and length % 16 == 0) and 2 or 1
end
"""

_ENTER = (
    LIST_IN
    + """
-- Enters a new job. KEYS[k..]: its queue's stream, delayed, open, list, lock, then job, index, events (may be missing);
-- ARGV[a..]: id, lane, now, first event ('' = none), then the hash's pairs
local function enter(k, a)
  local job, index, id, now = KEYS[k + 5], KEYS[k + 6], ARGV[a], ARGV[a + 2]
  if redis.call('EXISTS', job) == 1 then return 0 end
  redis.call('HSET', job, unpack(ARGV, a + 4))
  redis.call('ZADD', KEYS[k + 2], now, id)
  if ARGV[a + 3] ~= '' then redis.call('XADD', KEYS[k + 7], '0-1', 'event', ARGV[a + 3]) end
  redis.call('RPUSH', KEYS[k + 3], id)
  redis.call('XADD', KEYS[k], '*', 'lane', ARGV[a + 1], 'job', id)
  return list_in(index, id, now)
end
"""
)

SUBMIT = _ENTER + "return enter(1, 1)"

BEGIN = (
    _HEAD
    + """
-- KEYS[6] fence, KEYS[7] the job that the ticket names as the lane's head
-- ARGV: group, ticket, lane, lease ms, the id of that job
local group, ticket, lane, lease, job = ARGV[1], ARGV[2], ARGV[3], ARGV[4], KEYS[7]
local head = redis.call('LINDEX', list, 0)
if not head then
  redis.call('ZREM', delayed, lane)
  drop(group, ticket)
  return {'empty'}
end
local due = redis.call('ZSCORE', delayed, lane)
if due and tonumber(due) > now_ms() then
  drop(group, ticket)
  return {'later'}
end
local held = redis.call('GET', lock)
if held then
  local owner = string.match(held, '|(.*)$')
  if owner ~= ticket then
    drop(group, ticket)
    if owner == 'erase' then redis.call('ZADD', delayed, now_ms() + 500, lane) end
    return {'held'}
  end
end
if head ~= ARGV[5] then return {'head', head} end
if redis.call('EXISTS', job) == 0 then
  redis.call('LPOP', list)
  redis.call('ZREM', open, head)
  return {'head', redis.call('LINDEX', list, 0) or head}
end
redis.call('ZREM', delayed, lane)
local token = new_token(KEYS[6])
redis.call('SET', lock, token .. '|' .. ticket, 'PX', lease)
redis.call('HINCRBY', job, 'starts', 1)
redis.call('HSET', job, 'status', 'in_progress')
local counts = redis.call('HMGET', job, 'starts', 'failures', 'outages', 'request_id', 'traceparent')
return {'run', token, counts[1], counts[2] or 0, counts[3] or 0, counts[4] or '', counts[5] or ''}
"""
)

BEAT = (
    _HEAD
    + """
-- KEYS[6] job; ARGV: group, ticket, mine, lease ms, consumer
if redis.call('GET', lock) ~= ARGV[3] or redis.call('EXISTS', KEYS[6]) == 0 then return 'lost' end
redis.call('PEXPIRE', lock, ARGV[4])
redis.call('XCLAIM', stream, ARGV[1], ARGV[5], 0, ARGV[2], 'JUSTID')
if redis.call('HEXISTS', KEYS[6], 'cancel') == 1 then return 'cancel' end
return 'held'
"""
)

FINISH = (
    _HEAD
    + """
-- KEYS[6] job, KEYS[7] journal, KEYS[8] dead letters
-- ARGV: group, ticket, mine, lane, id, status, record, keep ms (0 = keep indefinitely), error ('' = done, else a dead
-- letter), 1 when payload and journal stay as long as the record
if redis.call('GET', lock) ~= ARGV[3] then return 0 end
redis.call('DEL', lock)
if redis.call('EXISTS', KEYS[6]) == 1 then
  redis.call('HSET', KEYS[6], 'status', ARGV[6], 'record', ARGV[7])
  if ARGV[9] ~= '' then
    local dead = redis.call('XADD', KEYS[8], '*', 'job', ARGV[5], 'lane', ARGV[4], 'error', ARGV[9])
    redis.call('HSET', KEYS[6], 'dead', dead)
  end
  if ARGV[10] == '0' then
    redis.call('HDEL', KEYS[6], 'payload')
    redis.call('DEL', KEYS[7])
  end
  if ARGV[8] == '0' then
    redis.call('PERSIST', KEYS[7])
  else
    redis.call('PEXPIRE', KEYS[6], ARGV[8])
    redis.call('PEXPIRE', KEYS[7], ARGV[8])
  end
end
redis.call('LREM', list, 1, ARGV[5])
redis.call('ZREM', open, ARGV[5])
drop(ARGV[1], ARGV[2])
pass_on(ARGV[4])
return 1
"""
)

RETRY = (
    _HEAD
    + """
-- KEYS[6] job; ARGV: group, ticket, mine, lane, counter, delay ms, error
if redis.call('GET', lock) ~= ARGV[3] then return 0 end
redis.call('DEL', lock)
if redis.call('EXISTS', KEYS[6]) == 1 then
  redis.call('HINCRBY', KEYS[6], ARGV[5], 1)
  redis.call('HSET', KEYS[6], 'status', 'queued', 'error', ARGV[7])
end
redis.call('ZADD', delayed, now_ms() + ARGV[6], ARGV[4])
drop(ARGV[1], ARGV[2])
return 1
"""
)

ABANDON = (
    _HEAD
    + """
-- KEYS[6] job; ARGV: group, ticket, mine, lane
local held = redis.call('GET', lock)
if held and held ~= ARGV[3] and string.match(held, '|(.*)$') == ARGV[2] then return 0 end
if held == ARGV[3] then
  redis.call('DEL', lock)
  if redis.call('EXISTS', KEYS[6]) == 1 then
    redis.call('HINCRBY', KEYS[6], 'starts', -1)
    redis.call('HSET', KEYS[6], 'status', 'queued')
  end
end
drop(ARGV[1], ARGV[2])
pass_on(ARGV[4])
return 1
"""
)

RETICKET = """
-- KEYS: stream; ARGV: group, ticket, lane, job
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
redis.call('XADD', KEYS[1], '*', 'lane', ARGV[3], 'job', ARGV[4])
return 1
"""

DUE = """
-- KEYS: delayed sets of all tiers. Returns the ms until the next lane's delay ends (empty: no lane waits), then the
-- lanes whose delay has ended: at most 100 per tier; the 101st is then the next
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local soonest, lanes = '', {}
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

PROMOTE = (
    _HEAD
    + """
-- ARGV: lane. Writes a ticket for a lane whose delay has ended, unless another worker did
local due = redis.call('ZSCORE', delayed, ARGV[1])
if not due or tonumber(due) > now_ms() then return 0 end
redis.call('ZREM', delayed, ARGV[1])
pass_on(ARGV[1])
return 1
"""
)

TAKE_LANE = (
    _HEAD
    + """
-- KEYS[6] fence; ARGV: lease ms, force (1 or 0)
if redis.call('EXISTS', lock) == 1 and ARGV[2] == '0' then return '0' end
redis.call('DEL', lock)
local token = new_token(KEYS[6])
redis.call('SET', lock, token .. '|erase', 'PX', ARGV[1])
return token
"""
)

TAKE_IDLE_LANE = (
    _HEAD
    + """
-- KEYS[6] fence; ARGV: lease ms
if redis.call('EXISTS', lock) == 1 or redis.call('LLEN', list) > 0 then return '0' end
local token = new_token(KEYS[6])
redis.call('SET', lock, token .. '|erase', 'PX', ARGV[1])
return token
"""
)

RECORD = (
    _HEAD
    + LIST_IN
    + """
-- KEYS[6] job, KEYS[7] index; ARGV: mine, lane, id, created ms, keep ms, then the hash's pairs
redis.call('HSET', KEYS[6], unpack(ARGV, 6))
redis.call('PEXPIRE', KEYS[6], ARGV[5])
local listed = list_in(KEYS[7], ARGV[3], ARGV[4])
if redis.call('GET', lock) == ARGV[1] then
  redis.call('DEL', lock)
  pass_on(ARGV[2])
end
return listed
"""
)

LEAVE_LANE = (
    _HEAD
    + """
-- ARGV: mine, lane
if redis.call('GET', lock) ~= ARGV[1] then return 0 end
redis.call('DEL', lock)
pass_on(ARGV[2])
return 1
"""
)

FORGET = (
    _HEAD
    + """
-- KEYS[6] job, KEYS[7] journal, KEYS[8] index, KEYS[9] dead letters, KEYS[10..] more to delete; ARGV: id
local state = redis.call('HMGET', KEYS[6], 'status', 'dead')
redis.call('LREM', list, 0, ARGV[1])
redis.call('ZREM', open, ARGV[1])
redis.call('ZREM', KEYS[8], ARGV[1])
if state[2] then redis.call('XDEL', KEYS[9], state[2]) end
redis.call('DEL', KEYS[6], KEYS[7], unpack(KEYS, 10))
return state[1]
"""
)

REQUEUE = (
    _HEAD
    + """
-- KEYS[6] job, KEYS[7] journal, KEYS[8] dead letters; ARGV: id, lane, record, created ms
-- Keeps decisions and stored results in the journal; deletes replies and invalid outputs.
local state = redis.call('HMGET', KEYS[6], 'dead', 'payload')
if not state[1] or not state[2] then return 0 end
for _, field in ipairs(redis.call('HKEYS', KEYS[7])) do
  if string.find(field, '^call:') or string.find(field, '^invalid:') then redis.call('HDEL', KEYS[7], field) end
end
redis.call('XDEL', KEYS[8], state[1])
redis.call('PERSIST', KEYS[6])
redis.call('PERSIST', KEYS[7])
redis.call('HDEL', KEYS[6], 'dead', 'starts', 'failures', 'outages', 'error')
redis.call('HSET', KEYS[6], 'status', 'queued', 'record', ARGV[3])
redis.call('ZADD', open, ARGV[4], ARGV[1])
redis.call('RPUSH', list, ARGV[1])
if redis.call('EXISTS', lock) == 0 then pass_on(ARGV[2]) end
return 1
"""
)

CANCEL = (
    _HEAD
    + _ENTER
    + """
-- KEYS[6] job, KEYS[7] journal, KEYS[8..] a job to queue when this one never ran (may be missing);
-- ARGV: id, record of a job that never ran, keep ms, then the arguments of the other job
local status = redis.call('HGET', KEYS[6], 'status')
if not status then return 'gone' end
if status ~= 'queued' and status ~= 'in_progress' then return 'done' end
if status == 'in_progress' or redis.call('EXISTS', lock) == 1 then
  redis.call('HSET', KEYS[6], 'cancel', 1)
  return 'asked'
end
redis.call('HSET', KEYS[6], 'status', 'cancelled', 'record', ARGV[2])
redis.call('HDEL', KEYS[6], 'payload')
redis.call('PEXPIRE', KEYS[6], ARGV[3])
redis.call('DEL', KEYS[7])
redis.call('LREM', list, 0, ARGV[1])
redis.call('ZREM', open, ARGV[1])
if KEYS[8] then enter(8, 4) end
return 'cancelled'
"""
)
