-- What a tenant stores: contents with their holders, and uploads that hold room for a file
local now = now_ms()

-- KEYS: the tenant's files, its reservations ('bytes file') by their end, the tenant's bytes
-- ARGV: file, bytes, most files, most bytes, lease ms. Returns reserved, or files or bytes for want of room
function steps.reserve()
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  local files, bytes = redis.call('ZCARD', KEYS[1]), tonumber(redis.call('GET', KEYS[3]) or 0) + ARGV[2]
  for _, reserved in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    local size, file = string.match(reserved, '^(%d+) (.*)$')
    if not redis.call('ZSCORE', KEYS[1], file) then files, bytes = files + 1, bytes + size end
  end
  if files >= tonumber(ARGV[3]) then return 'files' end
  if bytes > tonumber(ARGV[4]) then return 'bytes' end
  redis.call('ZADD', KEYS[2], whole(now + ARGV[5]), ARGV[2] .. ' ' .. ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
  return 'reserved'
end

-- KEYS: reservations; ARGV: reservation, lease ms
function steps.extend()
  redis.call('ZADD', KEYS[1], 'XX', whole(now + ARGV[2]), ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end

local function held_line() return table.concat({ARGV[1], ARGV[2], ARGV[3]}, ' ') end

-- KEYS: content, tenant's bytes, loose, holders
-- ARGV: holder, tenant, hash, place, bytes, most bytes, time of its next check. Returns the content's place
function steps.claim()
  local kept = redis.call('HGET', KEYS[1], 'place')
  if kept and redis.call('HEXISTS', KEYS[1], 'held:' .. ARGV[1]) == 1 then return kept end
  if tonumber(redis.call('GET', KEYS[2]) or 0) + ARGV[5] > tonumber(ARGV[6]) then return false end
  if not kept then
    kept = ARGV[4]
    redis.call('HSET', KEYS[1], 'place', kept, 'bytes', ARGV[5])
    redis.call('ZREM', KEYS[3], kept)
  end
  redis.call('HSET', KEYS[1], 'held:' .. ARGV[1], 1)
  redis.call('INCRBY', KEYS[2], ARGV[5])
  redis.call('ZADD', KEYS[4], ARGV[7], held_line())
  return kept
end

-- KEYS: as of claim; ARGV: holder, tenant, hash, now. Returns the content's place if that was its last holder
function steps.release()
  redis.call('ZREM', KEYS[4], held_line())
  if redis.call('HDEL', KEYS[1], 'held:' .. ARGV[1]) == 0 then return false end
  local found = redis.call('HMGET', KEYS[1], 'place', 'bytes')
  redis.call('DECRBY', KEYS[2], found[2])
  if redis.call('HLEN', KEYS[1]) > 2 then return false end
  redis.call('DEL', KEYS[1])
  redis.call('ZADD', KEYS[3], ARGV[4], found[1])
  return found[1]
end
