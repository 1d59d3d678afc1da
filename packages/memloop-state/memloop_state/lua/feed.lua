-- The feeds of changes. A tenant's is a stream; the hash state has the id of its last entry, which outlives the stream,
-- and its floor, the newest entry that was cut off. The hash unsure holds the changes of writes that are on their way
-- into the vector store, as '<ms> <JSON>' under the write's name.
-- Cuts off entries over the limits, at most ``room`` of them
local function trim(stream, state, most, keep_ms, room)
  local oldest = now_ms() - keep_ms
  local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if not first then return end
  local length = redis.call('XLEN', stream)
  if length <= most and tonumber(first[1]:match('^%d+')) >= oldest then return end
  for _, entry in ipairs(redis.call('XRANGE', stream, '-', '+', 'COUNT', room)) do
    if length <= most and tonumber(entry[1]:match('^%d+')) >= oldest then return end
    redis.call('XDEL', stream, entry[1])
    redis.call('HSET', state, 'floor', entry[1])
    length = length - 1
  end
end

-- KEYS: unsure; ARGV: name, changes. Notes changes that may come about
function steps.note()
  redis.call('HSET', KEYS[1], ARGV[1], now_ms() .. ' ' .. ARGV[2])
end

-- KEYS: stream, state, unsure; ARGV: the note's name or '', most entries, ms to keep them, then the changes. Cursors
-- before the first entry are of a feed that was lost
function steps.publish()
  for i = 4, #ARGV do
    local id = redis.call('XADD', KEYS[1], '*', 'change', ARGV[i])
    redis.call('HSETNX', KEYS[2], 'floor', id)
    redis.call('HSET', KEYS[2], 'last', id)
  end
  if ARGV[1] ~= '' then redis.call('HDEL', KEYS[3], ARGV[1]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  trim(KEYS[1], KEYS[2], tonumber(ARGV[2]), tonumber(ARGV[3]), 64 + #ARGV)
end

-- KEYS: stream, state; ARGV: cursor, count, most entries, ms to keep them. Returns 'old', or 'ok', the last id, then
-- id, change, id, change … The feed lost its state if a cursor stands after no known entry
function steps.read()
  trim(KEYS[1], KEYS[2], tonumber(ARGV[3]), tonumber(ARGV[4]), 1000)
  local last, floor = redis.call('HGET', KEYS[2], 'last'), redis.call('HGET', KEYS[2], 'floor') or '0-0'
  if ARGV[1] == 'latest' then return {'ok', last or '0'} end
  if not last then return ARGV[1] == '0' and {'ok', '0'} or {'old'} end
  if redis.call('EXISTS', KEYS[1]) == 0 then floor = last end
  local function parts(id)
    local ms, number = id:match('^(%d+)-(%d+)$')
    return tonumber(ms), tonumber(number)
  end
  if ARGV[1] ~= '0' then
    local ms, number = parts(ARGV[1])
    local floor_ms, floor_number = parts(floor)
    local last_ms, last_number = parts(last)
    if ms < floor_ms or (ms == floor_ms and number < floor_number) then return {'old'} end
    -- Behind the newest one: Redis has lost changes that the reader knows, or the cursor is made up
    if ms > last_ms or (ms == last_ms and number > last_number) then return {'old'} end
  end
  local found = {'ok', last}
  local from = ARGV[1] == '0' and '-' or '(' .. ARGV[1]
  for _, entry in ipairs(redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', ARGV[2])) do
    found[#found + 1] = entry[1]
    found[#found + 1] = entry[2][2]
  end
  return found
end

-- KEYS: unsure; ARGV: ms after which a write is over. Returns name, changes, name, changes … of writes that are
function steps.stale()
  local found, flat = {}, redis.call('HGETALL', KEYS[1])
  for i = 1, #flat, 2 do
    local at, changes = flat[i + 1]:match('^(%d+) (.*)$')
    if #found < 256 and tonumber(at) <= now_ms() - ARGV[1] then
      found[#found + 1] = flat[i]
      found[#found + 1] = changes
    end
  end
  return found
end
