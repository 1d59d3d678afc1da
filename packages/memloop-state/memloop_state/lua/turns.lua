-- The order in which workers take lanes: tenants take turns (memloop_state.queue.jobs). ARGV has the
-- terms of every step as JSON
local want = cjson.decode(ARGV[2])
local NAMES = {
  'stream', 'delayed', 'open', 'list', 'lock', 'ready', 'turns', 'since', 'bell', 'bytes',
  'job', 'journal', 'events', 'index', 'dead', 'fence', 'changed', 'erased'
}
local OF_A_LANE = #NAMES
-- The keys of a lane and a job, which begin at KEYS[k], by name
local function lane_at(k)
  local keys = {}
  for place, name in ipairs(NAMES) do keys[name] = KEYS[k + place - 1] end
  return keys
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
-- Lets a lane wait for a worker, unless it has no job, waits for its delay, or a worker has it
local function pass_on(q, tenant, lane)
  local head = redis.call('LINDEX', q.list, 0)
  if not head or redis.call('ZSCORE', q.delayed, lane) or is_worked(q.lock) then return end
  local entry, now = head .. ' ' .. lane, whole(now_us())
  if redis.call('ZADD', q.since, 'NX', now, entry) == 0 then return end
  redis.call('ZADD', q.ready, 0, tenant .. ':' .. now .. ':' .. entry)
  if not redis.call('ZSCORE', q.turns, tenant) then to_tail(q.turns, tenant) end
  ring(q.bell)
end
local function withdraw(q, tenant, lane, job)
  local entry = job .. ' ' .. lane
  local since = redis.call('ZSCORE', q.since, entry)
  if not since then return end
  redis.call('ZREM', q.since, entry)
  redis.call('ZREM', q.ready, tenant .. ':' .. whole(since) .. ':' .. entry)
end
-- KEYS: turns, picks, since, bell, the streams of all tiers, the ready sets of all tiers
-- Returns ticket, lane, job, tenant; or nothing
function steps.take()
  local turns, picks, since, bell = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  local tiers = (#KEYS - 4) / 2
  local function delivered(stream)
    local found = redis.call('XREADGROUP', 'GROUP', want.group, want.consumer, 'COUNT', 1, 'STREAMS', stream, '>')
    if not found then return nil end
    local entry, fields = found[1][2][1], {}
    for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
    return {entry[1], fields.lane, fields.job, fields.tenant or ''}
  end
  local function first_of(tenant, tier)
    local after = KEYS[4 + tiers + tier]
    return redis.call('ZRANGEBYLEX', after, '[' .. tenant .. ':', '(' .. tenant .. ';', 'LIMIT', 0, 1)[1]
  end
  local function any_of(tenant)
    for tier = 1, tiers do
      local found = first_of(tenant, tier)
      if found then return found, tier end
    end
  end
  local function next_of(tenant, pick)
    for tier = tiers, 2, -1 do
      if pick % 4 ^ (tier - 1) == 0 then
        local found = first_of(tenant, tier)
        if found then return found, tier end
        break
      end
    end
    return any_of(tenant)
  end
  local function leave(tenant)
    redis.call('ZREM', turns, tenant)
    redis.call('HDEL', picks, tenant)
  end
  local function take(tenant, pick, member, tier)
    local entry = string.match(string.sub(member, #tenant + 2), '^%d+:(.*)$')
    local job, lane = string.match(entry, '^(%S*) (.*)$')
    redis.call('ZREM', KEYS[4 + tiers + tier], member)
    redis.call('ZREM', since, entry)
    if not any_of(tenant) then
      leave(tenant)
    elseif pick % (want.weights[tenant] or 1) == 0 then
      to_tail(turns, tenant)
    end
    if redis.call('ZCARD', turns) == 0 then redis.call('DEL', bell) else ring(bell) end
    redis.call('XADD', KEYS[4 + tier], '*', 'lane', lane, 'job', job, 'tenant', tenant)
    return delivered(KEYS[4 + tier])
  end
  -- Tickets that an older version wrote for lanes that wait. A full Redis lets a script begin with this command
  for tier = 1, tiers do
    local old = delivered(KEYS[4 + tier])
    if old then return old end
  end
  local passed = {}
  for _, tenant in ipairs(want.passing) do passed[tenant] = true end
  local function head()
    for _, tenant in ipairs(redis.call('ZRANGE', turns, 0, #want.passing)) do
      if not passed[tenant] then return tenant end
    end
  end
  local tenant = head()
  while tenant do
    local pick = redis.call('HINCRBY', picks, tenant, 1)
    local member, tier = next_of(tenant, pick)
    if member then return take(tenant, pick, member, tier) end
    leave(tenant)
    tenant = head()
  end
  if redis.call('ZCARD', turns) == 0 then redis.call('DEL', bell) end
  return nil
end

-- KEYS: a tier's stream, delayed set and ready set. Gives the tenant's lanes behind the last entry that was read, whose
-- names begin with a prefix. Returns the last entry of a page with more behind it, else '', then the lanes. The last page has the lanes beside
-- those that wait for a worker. A lane that begins to wait again goes to the end, so no lane escapes between two pages
function steps.lanes_of()
  local tenant, prefix, last, most = want.tenant, want.prefix, want.last, want.most
  local from = last == '' and '[' .. tenant .. ':' or '(' .. last
  local entries = redis.call('ZRANGEBYLEX', KEYS[3], from, '(' .. tenant .. ';', 'LIMIT', 0, most)
  local found = {#entries == most and entries[most] or ''}
  local function add(lane)
    if string.sub(lane, 1, #prefix) == prefix then found[#found + 1] = lane end
  end
  for _, entry in ipairs(entries) do add(string.match(string.sub(entry, #tenant + 2), '^%d+:%S* (.*)$')) end
  if found[1] ~= '' then return found end
  for _, lane in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do add(lane) end
  for _, ticket in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
    for i = 1, #ticket[2], 2 do
      if ticket[2][i] == 'lane' then add(ticket[2][i + 1]) end
    end
  end
  return found
end
