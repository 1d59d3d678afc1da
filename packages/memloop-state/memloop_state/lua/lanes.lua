-- The steps of a lane queue (memloop_state.queue.lanes). KEYS begin with the ten of a lane, followed by a step's own
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
-- Lets an index end with the last of its jobs. One with a job that has no end, or with very many, stays
local function end_index(index, job, id)
  if redis.call('ZCARD', index) > 200 then return end
  local listed = redis.call('ZRANGE', index, 0, -1)
  for place, one in ipairs(listed) do listed[place] = string.sub(job, 1, -#id - 1) .. one end
  local longest = last_end(listed)
  if longest > 0 and longest < math.huge then redis.call('PEXPIRE', index, whole(longest)) end
end
-- A number that no token so far exceeds and every later one does, as text
local function began(fence)
  return string.format('%.0f', math.max(tonumber(redis.call('GET', fence) or 0), now_ms() - 1))
end
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
  end_with_records(job)
  return 1
end

function steps.submit() return enter(1, 1) end

-- KEYS[1] the guard's hash, then the job's keys; ARGV: the guard's, then the job's. Returns -3 if the hash has changed
function steps.submit_guarded()
  if guard_changed(KEYS[1], 1) then return -3 end
  return enter(2, 3 + ARGV[2])
end

-- KEYS[11] fence, KEYS[12] the job that the ticket names as the lane's head
-- ARGV: group, ticket, lane, lease ms, the id of that job
function steps.begin()
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
end

-- KEYS[11] job; ARGV: group, ticket, mine, lease ms, consumer
function steps.beat()
  if redis.call('GET', q.lock) ~= ARGV[3] or redis.call('EXISTS', KEYS[11]) == 0 then return 'lost' end
  redis.call('PEXPIRE', q.lock, ARGV[4])
  redis.call('XCLAIM', q.stream, ARGV[1], ARGV[5], 0, ARGV[2], 'JUSTID')
  if redis.call('HEXISTS', KEYS[11], 'cancel') == 1 then return 'cancel' end
  return 'held'
end

-- KEYS[11] job, KEYS[12] journal, KEYS[13] dead letters, KEYS[14] change
-- ARGV: group, ticket, mine, lane, id, status, record, keep ms (0 = keep indefinitely), error ('' = done, else a dead
-- letter), 1 when payload and journal stay as long as the record, tenant, 1 when the index ends with its jobs
function steps.finish()
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
end

-- KEYS[11] job; ARGV: group, ticket, mine, lane, counter, delay ms, error
function steps.retry()
  if redis.call('GET', q.lock) ~= ARGV[3] then return 0 end
  redis.call('DEL', q.lock)
  if redis.call('EXISTS', KEYS[11]) == 1 then
    redis.call('HINCRBY', KEYS[11], ARGV[5], 1)
    redis.call('HSET', KEYS[11], 'status', 'queued', 'error', ARGV[7])
  end
  redis.call('ZADD', q.delayed, now_ms() + ARGV[6], ARGV[4])
  drop(ARGV[1], ARGV[2])
  return 1
end

-- KEYS[11] job; ARGV: group, ticket, mine, lane, tenant
function steps.abandon()
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
end

-- KEYS: delayed sets of all tiers. Returns the ms until the next lane's delay ends (empty: no lane waits), then the
-- lanes whose delay has ended: at most 100 per tier; the 101st is then the next
function steps.due()
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
end

-- ARGV: lane, tenant. Lets a lane whose delay has ended wait for a worker, unless another worker did
function steps.promote()
  local due = redis.call('ZSCORE', q.delayed, ARGV[1])
  if not due or tonumber(due) > now_ms() then return 0 end
  redis.call('ZREM', q.delayed, ARGV[1])
  pass_on(q, ARGV[2], ARGV[1])
  return 1
end

-- KEYS[11] fence, KEYS[12] erasures, KEYS[13] change; ARGV: lease ms, force (1 or 0), the erased scope, keep ms
function steps.take_lane()
  if redis.call('EXISTS', q.lock) == 1 and ARGV[2] == '0' then return '0' end
  redis.call('DEL', q.lock)
  local token = new_token(KEYS[11])
  redis.call('SET', q.lock, token .. '|erase', 'PX', ARGV[1])
  redis.call('HSET', KEYS[12], ARGV[3], token)
  redis.call('PEXPIRE', KEYS[12], ARGV[4])
  note_change(KEYS[13])
  return token
end

-- KEYS[11] fence, KEYS[12] the guard's hash (may be missing); ARGV: lease ms, then the guard's
-- Returns '-3' if the hash has changed, '0' if the lane is busy
function steps.take_idle_lane()
  if guard_changed(KEYS[12], 2) then return '-3' end
  if redis.call('EXISTS', q.lock) == 1 or redis.call('LLEN', q.list) > 0 then return '0' end
  local token = new_token(KEYS[11])
  redis.call('SET', q.lock, token .. '|erase', 'PX', ARGV[1])
  return token
end

-- KEYS[11] job, KEYS[12] index; ARGV: mine, lane, id, created ms, keep ms, tenant, then the hash's pairs
-- Writes nothing and returns 0 when the lane was lost: an erasure that took it over must find no record afterwards
function steps.record()
  if redis.call('GET', q.lock) ~= ARGV[1] then return 0 end
  redis.call('HSET', KEYS[11], unpack(ARGV, 7))
  redis.call('PEXPIRE', KEYS[11], ARGV[5])
  list_in(KEYS[12], KEYS[11], ARGV[3], ARGV[4])
  end_index(KEYS[12], KEYS[11], ARGV[3])
  redis.call('DEL', q.lock)
  pass_on(q, ARGV[6], ARGV[2])
  return 1
end

-- ARGV: mine, lane, tenant
function steps.leave_lane()
  if redis.call('GET', q.lock) ~= ARGV[1] then return 0 end
  redis.call('DEL', q.lock)
  pass_on(q, ARGV[3], ARGV[2])
  return 1
end

-- KEYS[11] job, KEYS[12] journal, KEYS[13] index, KEYS[14] dead letters, KEYS[15] events; ARGV: id, lane
function steps.forget()
  local status, dead, tenant = unpack(redis.call('HMGET', KEYS[11], 'status', 'dead', 'tenant'))
  redis.call('LREM', q.list, 0, ARGV[1])
  redis.call('ZREM', q.open, ARGV[1])
  redis.call('ZREM', KEYS[13], ARGV[1])
  disown(KEYS[11])
  if dead then redis.call('XDEL', KEYS[14], dead) end
  release(KEYS[11])
  redis.call('DEL', KEYS[11], KEYS[12], KEYS[15])
  withdraw(q, tenant or '', ARGV[2], ARGV[1])
  pass_on(q, tenant or '', ARGV[2])
  return status
end

-- KEYS[11] job, KEYS[12] journal, KEYS[13] dead letters; ARGV: id, lane, record, created ms, then of a job that ended
-- well: its new payload, the status and the record that it must have ('' = a dead letter, with its own payload).
-- A dead letter keeps decisions and stored results in the journal; its replies are deleted.
function steps.requeue()
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
  end_with_records(KEYS[11])
  redis.call('HDEL', KEYS[11], 'dead', 'starts', 'failures', 'outages', 'error')
  redis.call('HSET', KEYS[11], 'status', 'queued', 'record', ARGV[3])
  redis.call('ZADD', q.open, ARGV[4], ARGV[1])
  redis.call('RPUSH', q.list, ARGV[1])
  pass_on(q, tenant or '', ARGV[2])
  return 1
end

-- KEYS[11] job, KEYS[12] journal, KEYS[13..] a job to queue when this one never ran (may be missing);
-- ARGV: id, lane, record of a job that never ran, keep ms, then the arguments of the other job
function steps.cancel()
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
end

-- KEYS: fence
function steps.newest() return began(KEYS[1]) end

-- KEYS: job, journal; ARGV: field, value. Sets the field if it is unset; returns its value
-- A full Redis refuses a script's first write if it may need memory: PERSIST needs none, and the job will free more.
function steps.keep()
  if redis.call('EXISTS', KEYS[1]) == 0 then return false end
  redis.call('PERSIST', KEYS[2])
  redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2])
  return redis.call('HGET', KEYS[2], ARGV[1])
end

-- KEYS: dead letters, the job of one, the tenants' bytes, the job's index (may be missing)
-- ARGV: entry, job id, tenant, bytes. Deletes the entry of a dead letter whose job has expired. Returns 1 if it did
function steps.drop_letter()
  if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('XDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
  if KEYS[4] then redis.call('ZREM', KEYS[4], ARGV[2]) end
  if redis.call('HEXISTS', KEYS[3], ARGV[3]) == 1 and redis.call('HINCRBY', KEYS[3], ARGV[3], -ARGV[4]) <= 0 then
    redis.call('HDEL', KEYS[3], ARGV[3])
  end
  return 1
end

-- KEYS: the lane's list, the user's last failed write, fence, the lane's last change; ARGV: what a job's key begins
-- with, most jobs, most bytes, JSON with the states of the jobs that the caller has kept, by id. Returns the newest
-- token, the failed write ('' = none), the ms since the lane's last change ('' = a minute or more), then id, status and
-- payload of each job, newest first; the payload is '' if the caller has the job in that state. The jobs' keys have the
-- tag of the list, but are known only from it.
function steps.standing()
  local kept = cjson.decode(ARGV[4])
  local changed = redis.call('GET', KEYS[4])
  local since = changed and string.format('%.0f', now_ms() - changed) or ''
  local found, left = {began(KEYS[3]), redis.call('GET', KEYS[2]) or '', since}, tonumber(ARGV[3])
  local ids = redis.call('LRANGE', KEYS[1], -ARGV[2], -1)
  for i = #ids, 1, -1 do
    local job = ARGV[1] .. ids[i]
    local size = redis.call('HSTRLEN', job, 'payload')
    if size > 0 and size <= left then
      left = left - size
      local status = redis.call('HGET', job, 'status') or ''
      found[#found + 1] = ids[i]
      found[#found + 1] = status
      found[#found + 1] = kept[ids[i]] == status and '' or redis.call('HGET', job, 'payload')
    end
  end
  return found
end

-- KEYS: job, events; ARGV: number of the first event, job and events end after ms (0 = leave), record of a job whose
-- last event is new ('' = leave), events… One that is there stays. Returns gone, cancel or added
function steps.publish()
  if redis.call('EXISTS', KEYS[1]) == 0 then return 'gone' end
  local failed
  for place = 4, #ARGV do
    local added = redis.pcall('XADD', KEYS[2], '0-' .. whole(ARGV[1] + place - 3), 'event', ARGV[place])
    failed = type(added) == 'table' and added.err
    if failed and not string.find(failed, 'equal or smaller') then return redis.error_reply(failed) end
  end
  if ARGV[3] ~= '' and not failed then redis.call('HSET', KEYS[1], 'record', ARGV[3]) end
  if ARGV[2] ~= '0' then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
    end_with_records(KEYS[1])
  end
  return redis.call('HEXISTS', KEYS[1], 'cancel') == 1 and 'cancel' or 'added'
end

-- KEYS: job, index, those of its owners; ARGV: id, now, ends after ms, its owners, then the hash's pairs. Returns 0 if
-- one of them was erased since the work began
function steps.open()
  local owners = owners_at(ARGV, 4)
  if is_erased(3, owners) then return 0 end
  redis.call('HSET', KEYS[1], unpack(ARGV, 5 + 4 * #owners))
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  list_in(KEYS[2], KEYS[1], ARGV[1], ARGV[2])
  own(3, owners, KEYS[1])
  end_with_records(KEYS[1])
  return 1
end

-- KEYS: jobs; each one's status, nil when it is gone
function steps.statuses()
  local statuses = {}
  for number, job in ipairs(KEYS) do statuses[number] = redis.call('HGET', job, 'status') end
  return statuses
end
