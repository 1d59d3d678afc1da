-- API keys with the log of their changes, and rates in a sliding window of counts per second

-- KEYS: records, the tenant's index, log of changes, last uses, audit log
-- ARGV: id, record before ('' = none), record after ('' = none), keys per tenant, audit entry, length of both logs
function steps.change()
  local kept = redis.call('HGET', KEYS[1], ARGV[1]) or ''
  if kept == ARGV[3] and kept ~= '' then return 'done' end -- by this change, whose reply was lost
  if kept ~= ARGV[2] then return 'changed' end
  if ARGV[3] == '' then
    redis.call('HDEL', KEYS[1], ARGV[1])
    redis.call('ZREM', KEYS[2], ARGV[1])
    redis.call('HDEL', KEYS[4], ARGV[1])
  else
    if ARGV[2] == '' and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 'full' end
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
    redis.call('ZADD', KEYS[2], 0, ARGV[1])
  end
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[6], '*', 'id', ARGV[1])
  redis.call('XADD', KEYS[5], 'MAXLEN', '~', ARGV[7], '*', 'entry', ARGV[5])
  return 'done'
end

-- KEYS[1] window; ARGV: limit of requests, limit of tokens (0 = none), estimated tokens, seconds to keep
function steps.admit()
  local now, keep = tonumber(redis.call('TIME')[1]), tonumber(ARGV[4])
  local used, slots = {r = 0, t = 0}, {r = {}, t = {}}
  local counts = redis.call('HGETALL', KEYS[1])
  for i = 1, #counts, 2 do
    local kind, second = string.sub(counts[i], 1, 1), tonumber(string.sub(counts[i], 2))
    if second <= now - keep then
      redis.call('HDEL', KEYS[1], counts[i])
    else
      used[kind] = used[kind] + tonumber(counts[i + 1])
      table.insert(slots[kind], {second, tonumber(counts[i + 1])})
    end
  end
  for _, found in pairs(slots) do table.sort(found, function(a, b) return a[1] < b[1] end) end
  local function wait(kind, limit, asked)
    local over = used[kind] + asked - limit
    if limit == 0 or over <= 0 then return 0 end
    for _, slot in ipairs(slots[kind]) do
      over = over - slot[2]
      if over <= 0 then return slot[1] + keep - now end
    end
    return keep
  end
  local function reset(kind)
    local newest = slots[kind][#slots[kind]]
    return newest and newest[1] + keep - now or 0
  end
  local requests, tokens, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
  if tokens > 0 then asked = math.min(asked, tokens) end
  local wait_requests, wait_tokens = wait('r', requests, 1), wait('t', tokens, asked)
  if wait_requests > 0 or wait_tokens > 0 then
    return {wait_requests, wait_tokens, used.r, used.t, reset('r'), reset('t'), now, 0}
  end
  redis.call('HINCRBY', KEYS[1], 'r' .. now, 1)
  if asked > 0 then redis.call('HINCRBY', KEYS[1], 't' .. now, asked) end
  redis.call('EXPIRE', KEYS[1], keep)
  return {0, 0, used.r + 1, used.t + asked, keep, asked > 0 and keep or reset('t'), now, asked}
end

-- KEYS[1] window; ARGV: the second of admission, correction of the tokens counted then (+ or -), seconds to keep
function steps.settle()
  local field, more = 't' .. ARGV[1], tonumber(ARGV[2])
  if more > 0 then field = 't' .. redis.call('TIME')[1] end
  if more < 0 and redis.call('HEXISTS', KEYS[1], field) == 0 then return end
  redis.call('HINCRBY', KEYS[1], field, more)
  redis.call('EXPIRE', KEYS[1], ARGV[3])
end
