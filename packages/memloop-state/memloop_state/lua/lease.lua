-- Leases, answers that are given once, and named texts. Times are in milliseconds of Redis's clock.
local now = now_ms()
local RECORD = KEYS[1]

-- ARGV: holder, lease ms. Returns 1 for the holder, whose lease begins again
function steps.hold()
  local holder = redis.call('GET', RECORD)
  if holder and holder ~= ARGV[1] then return 0 end
  redis.call('SET', RECORD, ARGV[1], 'PX', ARGV[2])
  return 1
end

-- ARGV: hash of the request, the attempt's name, lease ms, keep ms
function steps.take()
  local kept = redis.call('HMGET', RECORD, 'body', 'until', 'seed', 'status', 'kind', 'answer', 'owner')
  if kept[1] and kept[1] ~= ARGV[1] then return {'other'} end
  if kept[4] then return {'done', kept[4], kept[5], kept[6]} end
  if kept[2] and tonumber(kept[2]) > now and kept[7] ~= ARGV[2] then return {'busy'} end
  local seed = kept[3] or ARGV[2]
  redis.call('HDEL', RECORD, 'erased')
  redis.call('HSET', RECORD, 'body', ARGV[1], 'owner', ARGV[2], 'seed', seed, 'until', whole(now + ARGV[3]))
  redis.call('PEXPIRE', RECORD, ARGV[4])
  return {'yours', seed}
end

local function is_mine() return redis.call('HGET', RECORD, 'owner') == ARGV[1] end

-- ARGV: the attempt's name, lease ms
function steps.extend()
  if is_mine() then redis.call('HSET', RECORD, 'until', whole(now + ARGV[2])) end
end

-- ARGV: the attempt's name, keep ms, status, media type, answer
function steps.keep()
  if not is_mine() then return end
  if redis.call('HEXISTS', RECORD, 'erased') == 1 then return redis.call('DEL', RECORD) end
  redis.call('HSET', RECORD, 'status', ARGV[3], 'kind', ARGV[4], 'answer', ARGV[5])
  redis.call('PEXPIRE', RECORD, ARGV[2])
end

-- ARGV: the attempt's name, 'free' (another body may come) or 'again' (the same attempt may)
function steps.release()
  if not is_mine() then return end
  if ARGV[2] == 'free' then return redis.call('DEL', RECORD) end
  redis.call('HDEL', RECORD, 'until')
end

-- KEYS: the records of a subject; ARGV: record, keep ms
function steps.note()
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  redis.call('ZADD', KEYS[1], whole(now + ARGV[2]), ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end

-- Deletes a record that has an answer. Without one, the answer to come will not be kept
function steps.forget()
  if redis.call('HEXISTS', RECORD, 'status') == 1 then return redis.call('DEL', RECORD) end
  if redis.call('EXISTS', RECORD) == 1 then redis.call('HSET', RECORD, 'erased', 1) end
  return 0
end

-- KEYS: the hash. ARGV: name, text, the most names ('' = any). Returns 0 when it is full
function steps.put()
  if ARGV[3] ~= '' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0
    and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return 1
end
