-- The steps of a lane queue (memloop_state.queue.lanes). ARGV has the terms as JSON, then a new job's hash in pairs
local q, lane = keys_at(want), want.lane
local job = q.job
-- Notes that something has left the lane: see docs/decisions/0068-queue-and-store-are-read-at-once.md
local function note_change() redis.call('SET', q.changed, whole(now_ms()), 'PX', 60000) end
-- Whether the holder has lost the lane; frees it if not
local function is_lost()
  if redis.call('GET', q.lock) ~= want.mine then return true end
  redis.call('DEL', q.lock)
  redis.call('ZREM', q.held, lane)
end
local function exists() return redis.call('EXISTS', job) == 1 end
-- Gives back bytes of a tenant's quota
local function give_back(tenant, bytes)
  if redis.call('HEXISTS', q.bytes, tenant) == 1 and redis.call('HINCRBY', q.bytes, tenant, -bytes) <= 0 then
    redis.call('HDEL', q.bytes, tenant)
  end
end
local function release()
  local tenant, bytes = unpack(redis.call('HMGET', job, 'tenant', 'bytes'))
  if bytes then give_back(tenant or '', bytes) end
  redis.call('HDEL', job, 'bytes')
end
-- Lists a job. At every sixteenth one in a long index, the oldest that are deleted are taken out
local function list_in(index, id, at)
  redis.call('ZADD', index, at, id)
  redis.call('PERSIST', index)
  local length = redis.call('ZCARD', index)
  if length <= 100 or length % 16 > 0 then return end
  for _, old in ipairs(redis.call('ZRANGE', index, 0, 31)) do
    if redis.call('EXISTS', key('job', old)) == 0 then redis.call('ZREM', index, old) end
  end
end
-- Lets an index end with the last of its jobs. One with a job that has no end, or with very many, stays
local function end_index(index)
  if redis.call('ZCARD', index) > 200 then return end
  local listed = redis.call('ZRANGE', index, 0, -1)
  for place, one in ipairs(listed) do listed[place] = key('job', one) end
  local longest = last_end(listed)
  if longest > 0 and longest < math.huge then redis.call('PEXPIRE', index, whole(longest)) end
end
-- Lets the job and what belongs to it end after want.keep_ms, and the indexes that list it with the last of their jobs
local function end_job(...)
  for _, one in ipairs({job, ...}) do redis.call('PEXPIRE', one, want.keep_ms) end
  end_index(redis.call('HGET', job, 'index'))
  end_with_records(job)
end
-- A number that no token so far exceeds and every later one does, as text
local function began() return whole(math.max(tonumber(redis.call('GET', q.fence) or 0), now_ms() - 1)) end
-- Takes a job that will not run out of its lane
local function leave_list()
  redis.call('LREM', q.list, 0, want.id)
  redis.call('ZREM', q.open, want.id)
  withdraw(q, lane, want.id)
  pass_on(q, lane)
end
-- Enters a new job. Returns queued; known; erased: one of its owners was since the work began; many: its index is full;
-- or full: the jobs of its tenant hold too many bytes
local function enter(want)
  local q, bytes, owners = keys_at(want), 1024, want.owners
  if redis.call('EXISTS', q.job) == 1 then return 'known' end
  if is_erased(owners) then return 'erased' end
  if want.most > 0 and redis.call('ZCARD', q.index) >= want.most then return 'many' end
  for i = 2, #ARGV do bytes = bytes + #ARGV[i] end
  local held = tonumber(redis.call('HGET', q.bytes, want.tenant) or 0)
  if want.quota > 0 and held > 0 and held + bytes > want.quota then return 'full' end
  redis.call('HSET', q.job, unpack(ARGV, 2))
  redis.call('HSET', q.job, 'bytes', bytes, 'index', q.index)
  redis.call('HINCRBY', q.bytes, want.tenant, bytes)
  redis.call('ZADD', q.open, want.now, want.id)
  if want.event then redis.call('XADD', q.events, '0-1', 'event', want.event) end
  redis.call('RPUSH', q.list, want.id)
  pass_on(q, want.lane)
  list_in(q.index, want.id, want.now)
  own(owners, q.job)
  end_with_records(q.job)
  return 'queued'
end

-- Returns changed if the guard's hash has, or as enter does
function steps.submit()
  if has_changed(want.guard) then return 'changed' end
  return enter(want)
end

function steps.beat()
  if redis.call('GET', q.lock) ~= want.mine or not exists() then return 'lost' end
  redis.call('PEXPIRE', q.lock, want.worker.lease_ms)
  redis.call('ZADD', q.held, now_ms() + want.worker.idle_ms, lane)
  return redis.call('HEXISTS', job, 'cancel') == 1 and 'cancel' or 'held'
end

-- Ends the job: with dead, an error, as a dead letter. Without keep_ms it stays; with keeps_work so do its payload and
-- journal
function steps.finish()
  if is_lost() then return 0 end
  if exists() then
    local keeps_bytes = want.dead and want.keep_ms and want.keeps_work
    redis.call('HSET', job, 'status', want.status, 'record', want.record)
    if want.dead then
      local tenant, bytes, index = unpack(redis.call('HMGET', job, 'tenant', 'bytes', 'index'))
      local dead = redis.call('XADD', q.dead, '*', 'job', want.id, 'lane', lane, 'error', want.dead,
        'tenant', tenant or '', 'index', index, 'bytes', keeps_bytes and bytes or 0)
      redis.call('HSET', job, 'dead', dead)
    end
    if not keeps_bytes then release() end
    if not want.keeps_work then
      redis.call('HDEL', job, 'payload')
      redis.call('DEL', q.journal)
    end
    if want.keep_ms then
      end_job(q.journal)
    else
      redis.call('PERSIST', q.journal)
    end
  end
  redis.call('LREM', q.list, 1, want.id)
  redis.call('ZREM', q.open, want.id)
  note_change()
  pass_on(q, lane)
  return 1
end

function steps.retry()
  if is_lost() then return 0 end
  if exists() then
    redis.call('HINCRBY', job, want.counter, 1)
    redis.call('HSET', job, 'status', 'queued', 'error', want.error)
  end
  redis.call('ZADD', q.delayed, now_ms() + want.delay_ms, lane)
  return 1
end

-- Gives the job back, or the lane of an erasure; or takes note that the lane was lost to an erasure or by its time
function steps.abandon()
  if not is_lost() then
    if exists() then
      redis.call('HINCRBY', job, 'starts', -1)
      redis.call('HSET', job, 'status', 'queued')
    end
  elseif is_worked(q.lock) then
    return 0
  else
    redis.call('ZREM', q.held, lane)
  end
  pass_on(q, lane)
  return 1
end

-- Lets the lanes whose delay has ended wait for a worker, at most 100 per tier. Returns the ms until the next one's ends,
-- nothing if no lane is delayed
function steps.promote()
  local now, soonest = now_ms(), nil
  for _, line in ipairs(want.lines) do
    local found = redis.call('ZRANGE', key('jobs', line, 'delayed'), 0, 100, 'WITHSCORES')
    for i = 1, #found, 2 do
      local wait, q = math.max(0, found[i + 1] - now), keys_at({queue = want.queue, line = line, lane = found[i]})
      if wait == 0 and i < 200 then
        redis.call('ZREM', q.delayed, found[i])
        pass_on(q, found[i])
      elseif not soonest or wait < soonest then
        soonest = wait
      end
    end
  end
  return soonest
end

-- Locks the lane: for an erasure, or to write where no job waits (idle). Returns the token, 'changed' if the guard's hash
-- has, '0' while the lane is busy
function steps.take_lane()
  if has_changed(want.guard) then return 'changed' end
  if redis.call('EXISTS', q.lock) == 1 and not want.force then return '0' end
  if want.idle and redis.call('LLEN', q.list) > 0 then return '0' end
  if not want.idle then
    redis.call('DEL', q.lock) -- a full Redis lets a script begin with this command
    note_change()
  end
  local token = new_token(q.fence)
  redis.call('SET', q.lock, token .. '|erase', 'PX', want.lease_ms)
  return token
end

-- Stores a job that no worker runs; `mine` has done it under the lane's lock, which is free then. Writes nothing and
-- returns 0 when the lane was lost, since an erasure must find no record afterwards, or an owner erased
function steps.record()
  if is_erased(want.owners) or want.mine and is_lost() then return 0 end
  redis.call('HSET', job, 'index', q.index, unpack(ARGV, 2))
  list_in(q.index, want.id, want.now)
  own(want.owners, job)
  end_job()
  if want.mine then pass_on(q, lane) end
  return 1
end

function steps.forget()
  local status, record, dead, index = unpack(redis.call('HMGET', job, 'status', 'record', 'dead', 'index'))
  leave_list()
  if index then redis.call('ZREM', index, want.id) end
  disown(job)
  if dead then redis.call('XDEL', q.dead, dead) end
  release()
  redis.call('DEL', job, q.journal, q.events)
  return {status, record}
end

-- Queues a job again: a dead letter with its own payload, or one that ended well and has this record still, with another
-- payload. A dead letter keeps decisions and stored results in the journal; its replies are deleted
function steps.requeue()
  local dead, payload, index, record = unpack(redis.call('HMGET', job, 'dead', 'payload', 'index', 'record'))
  if want.payload then
    if record ~= want.former then return 0 end
    redis.call('DEL', q.journal)
    redis.call('HSET', job, 'payload', want.payload)
  elseif not dead or not payload then
    return 0
  end
  if index then redis.call('PERSIST', index) end
  for _, field in ipairs(redis.call('HKEYS', q.journal)) do
    if string.find(field, '^call:') then redis.call('HDEL', q.journal, field) end
  end
  if dead then redis.call('XDEL', q.dead, dead) end
  redis.call('PERSIST', job)
  redis.call('PERSIST', q.journal)
  end_with_records(job)
  redis.call('HDEL', job, 'dead', 'starts', 'failures', 'outages', 'error')
  redis.call('HSET', job, 'status', 'queued', 'record', want.record)
  redis.call('ZADD', q.open, want.now, want.id)
  redis.call('RPUSH', q.list, want.id)
  pass_on(q, lane)
  return 1
end

-- Ends a waiting job, and enters the next one; asks the worker of a running one to end it
function steps.cancel()
  local status = redis.call('HGET', job, 'status')
  if not status then return 'gone' end
  if status ~= 'queued' and status ~= 'in_progress' then return 'done' end
  if status == 'in_progress' or redis.call('EXISTS', q.lock) == 1 then
    redis.call('HSET', job, 'cancel', 1)
    return 'asked'
  end
  redis.call('HSET', job, 'status', 'cancelled', 'record', want.record)
  redis.call('HDEL', job, 'payload')
  release()
  end_job()
  redis.call('DEL', q.journal)
  leave_list()
  if want.next then enter(want.next) end
  return 'cancelled'
end

function steps.newest() return began() end

-- Sets a field of the journal if it is unset; returns its value
-- A full Redis refuses a script's first write if it may need memory: PERSIST needs none, and the job will free more.
function steps.keep()
  if not exists() then return false end
  redis.call('PERSIST', q.journal)
  redis.call('HSETNX', q.journal, want.field, want.value)
  return redis.call('HGET', q.journal, want.field)
end

-- Deletes the entry of a dead letter whose job has expired. Returns 1 if it did
function steps.drop_letter()
  if exists() or redis.call('XDEL', q.dead, want.entry) == 0 then return 0 end
  redis.call('ZREM', q.index, want.id)
  give_back(want.tenant, want.bytes)
  return 1
end

-- Returns the newest token, the text at the key of the user's last failed write ('' = none), the ms since the lane's last
-- change ('' = a minute or more), then id, status and payload of each job, newest first; the payload is '' if the caller
-- has kept the job in that state
function steps.standing()
  local changed = redis.call('GET', q.changed)
  local since = changed and whole(now_ms() - changed) or ''
  local found, left = {began(), redis.call('GET', want.failed) or '', since}, want.bytes
  local ids = redis.call('LRANGE', q.list, -want.most, -1)
  for i = #ids, 1, -1 do
    local one = key('job', ids[i])
    local size = redis.call('HSTRLEN', one, 'payload')
    if size > 0 and size <= left then
      left = left - size
      local status = redis.call('HGET', one, 'status') or ''
      found[#found + 1] = ids[i]
      found[#found + 1] = status
      found[#found + 1] = want.kept[ids[i]] == status and '' or redis.call('HGET', one, 'payload')
    end
  end
  return found
end

-- Texts: events, of which the first has the number want.first. One that is there stays. Job and events end after want.keep_ms, if given; with a new last event the job has want.record. Returns gone, cancel or added
function steps.publish()
  if not exists() then return 'gone' end
  local failed
  for place = 2, #ARGV do
    local added = redis.pcall('XADD', q.events, '0-' .. whole(want.first + place - 1), 'event', ARGV[place])
    failed = type(added) == 'table' and added.err
    if failed and not string.find(failed, 'equal or smaller') then return redis.error_reply(failed) end
  end
  if want.record and not failed then redis.call('HSET', job, 'record', want.record) end
  if want.keep_ms then end_job(q.events) end
  return redis.call('HEXISTS', job, 'cancel') == 1 and 'cancel' or 'added'
end
