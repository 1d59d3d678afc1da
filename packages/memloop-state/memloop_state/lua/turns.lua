-- The order in which workers take lanes: tenants take turns (memloop_state.queue.jobs). ARGV has the
-- terms of every step as JSON
local want = cjson.decode(ARGV[2])
local OF = {
  held = 'line', delayed = 'line', ready = 'line', list = 'lane', lock = 'lane', changed = 'digest',
  turns = 'queue', picks = 'queue', since = 'queue', bell = 'queue', open = 'queue',
  job = 'id', journal = 'id', events = 'id', dead = '', fence = '', bytes = ''
}
local KINDS = {list = 'lane', events = 'read-events', bytes = 'queued-bytes'}
-- The keys of a queue, of the line of one of its tiers, and of a lane and a job in it. Each is named when it is read
local function keys_at(at)
  return setmetatable({index = at.index}, {__index = function(q, name)
    local of, kind = OF[name], KINDS[name] or name
    local named = of == 'line' and key('jobs', at.line, name) or of == 'lane' and key(kind, at.queue, at.lane)
      or key(kind, at[of])
    rawset(q, name, named)
    return named
  end})
end
local function ring(bell)
  if redis.call('LLEN', bell) == 0 then redis.call('RPUSH', bell, 1) end
end
local function to_tail(turns, tenant)
  local last = redis.call('ZREVRANGE', turns, 0, 0, 'WITHSCORES')[2] or 0
  redis.call('ZADD', turns, whole(last + 1), tenant)
end
-- Whether a worker has the lane. An erasure has not: it does not pass the lane on if its process dies
local function is_worked(lock)
  local held = redis.call('GET', lock)
  return held and not string.find(held, '|erase$')
end
-- The tenant of a job, '' without one
local function tenant_of(job) return redis.call('HGET', key('job', job), 'tenant') or '' end
-- Lets a lane wait for a worker, unless it has no job, waits for its delay, or a worker has it
local function pass_on(q, lane)
  local head = redis.call('LINDEX', q.list, 0)
  if not head or redis.call('ZSCORE', q.delayed, lane) or is_worked(q.lock) then return end
  local tenant, entry, now = tenant_of(head), head .. ' ' .. lane, whole(now_us())
  if redis.call('ZADD', q.since, 'NX', now, entry) == 0 then return end
  redis.call('ZADD', q.ready, 0, tenant .. ':' .. now .. ':' .. entry)
  if not redis.call('ZSCORE', q.turns, tenant) then to_tail(q.turns, tenant) end
  ring(q.bell)
end
local function withdraw(q, lane, job)
  local entry = job .. ' ' .. lane
  local since = redis.call('ZSCORE', q.since, entry)
  if not since then return end
  redis.call('ZREM', q.since, entry)
  redis.call('ZREM', q.ready, tenant_of(job) .. ':' .. whole(since) .. ':' .. entry)
end
local function new_token(fence)
  local token, now = redis.call('INCR', fence), now_ms()
  if token < now then
    token = now
    redis.call('SET', fence, whole(now))
  end
  return whole(token)
end
-- Leases the next job of a lane that no worker has. Returns lane, job, token, starts, failures, outages, tenant, request
-- id, traceparent; nothing if the lane has no job or has to wait
local function leased(line, lane)
  local q = keys_at({queue = want.queue, line = line, lane = lane})
  local head = redis.call('LINDEX', q.list, 0)
  while head and redis.call('EXISTS', key('job', head)) == 0 do
    redis.call('LPOP', q.list)
    redis.call('ZREM', q.open, head)
    head = redis.call('LINDEX', q.list, 0)
  end
  local due = redis.call('ZSCORE', q.delayed, lane)
  if head and due and tonumber(due) > now_ms() then return nil end
  redis.call('ZREM', q.delayed, lane)
  if not head then return nil end
  if redis.call('EXISTS', q.lock) == 1 then
    if not is_worked(q.lock) then redis.call('ZADD', q.delayed, now_ms() + 500, lane) end
    return nil
  end
  local job, token = key('job', head), new_token(q.fence)
  redis.call('SET', q.lock, token .. '|' .. want.worker.name, 'PX', want.worker.lease_ms)
  redis.call('ZADD', q.held, now_ms() + want.worker.idle_ms, lane)
  redis.call('HINCRBY', job, 'starts', 1)
  redis.call('HSET', job, 'status', 'in_progress')
  local found = redis.call('HMGET', job, 'starts', 'failures', 'outages', 'tenant', 'request_id', 'traceparent')
  withdraw(q, lane, head)
  return {lane, head, token, found[1], found[2] or 0, found[3] or 0, found[4] or '', found[5] or '', found[6] or ''}
end

-- Leases the next job of the tenant whose turn it is. Returns as `leased`
function steps.take()
  local q = keys_at(want)
  redis.call('PERSIST', q.turns) -- a full Redis lets a script begin with this command
  local function first_of(tenant, tier)
    local after = key('jobs', want.lines[tier], 'ready')
    return redis.call('ZRANGEBYLEX', after, '[' .. tenant .. ':', '(' .. tenant .. ';', 'LIMIT', 0, 1)[1]
  end
  -- The next lane of a tenant and its tier, by the number of the pick (1 = the most urgent tier with a lane)
  local function next_of(tenant, pick)
    for tier = #want.lines, 2, -1 do
      if pick % 4 ^ (tier - 1) == 0 then
        local found = first_of(tenant, tier)
        if found then return found, tier end
        break
      end
    end
    for tier = 1, #want.lines do
      local found = first_of(tenant, tier)
      if found then return found, tier end
    end
  end
  local function leave(tenant)
    redis.call('ZREM', q.turns, tenant)
    redis.call('HDEL', q.picks, tenant)
  end
  -- Takes a lane out of the line; returns its name
  local function taken(tenant, pick, member, tier)
    local entry = string.match(string.sub(member, #tenant + 2), '^%d+:(.*)$')
    redis.call('ZREM', key('jobs', want.lines[tier], 'ready'), member)
    redis.call('ZREM', q.since, entry)
    if not next_of(tenant, 1) then
      leave(tenant)
    elseif pick % (want.weights[tenant] or 1) == 0 then
      to_tail(q.turns, tenant)
    end
    return string.match(entry, '^%S* (.*)$')
  end
  local passed = {}
  for _, tenant in ipairs(want.passing) do passed[tenant] = true end
  local function head()
    for _, tenant in ipairs(redis.call('ZRANGE', q.turns, 0, #want.passing)) do
      if not passed[tenant] then return tenant end
    end
  end
  local tenant, found = head(), nil
  while tenant and not found do
    local pick = redis.call('HINCRBY', q.picks, tenant, 1)
    local member, tier = next_of(tenant, pick)
    if member then
      found = leased(want.lines[tier], taken(tenant, pick, member, tier))
    else
      leave(tenant)
    end
    tenant = head()
  end
  if redis.call('ZCARD', q.turns) == 0 then redis.call('DEL', q.bell) elseif found then ring(q.bell) end
  return found
end

-- Leases the next job of a lane whose worker has been silent for too long, and is not the caller, who runs these lanes.
-- Returns as `leased`
function steps.claim()
  local runs = {}
  for _, lane in ipairs(want.running) do runs[lane] = true end
  for _, line in ipairs(want.lines) do
    local held = key('jobs', line, 'held')
    for _, lane in ipairs(redis.call('ZRANGEBYSCORE', held, '-inf', now_ms(), 'LIMIT', 0, 100)) do
      if not runs[lane] then
        local lock = key('lock', want.queue, lane)
        redis.call('ZREM', held, lane)
        if is_worked(lock) then redis.call('DEL', lock) end
        local found = leased(line, lane)
        if found then return found end
      end
    end
  end
  return nil
end

-- Gives a tier's lanes of the tenant behind the last entry that was read, whose names begin with a prefix. Returns the
-- last entry of a page with more behind it, else '', then the lanes. The last page has the lanes beside those that wait
-- for a worker. A lane that begins to wait again goes to the end, so no lane escapes between two pages
function steps.lanes_of()
  local q, tenant, prefix, last, most = keys_at(want), want.tenant, want.prefix, want.last, want.most
  local from = last == '' and '[' .. tenant .. ':' or '(' .. last
  local entries = redis.call('ZRANGEBYLEX', q.ready, from, '(' .. tenant .. ';', 'LIMIT', 0, most)
  local found = {#entries == most and entries[most] or ''}
  local function add(lane)
    if string.sub(lane, 1, #prefix) == prefix then found[#found + 1] = lane end
  end
  for _, entry in ipairs(entries) do add(string.match(string.sub(entry, #tenant + 2), '^%d+:%S* (.*)$')) end
  if found[1] ~= '' then return found end
  for _, lane in ipairs(redis.call('ZRANGE', q.delayed, 0, -1)) do add(lane) end
  for _, lane in ipairs(redis.call('ZRANGE', q.held, 0, -1)) do add(lane) end
  return found
end
