-- One step on the records of a table. ARGV: the step, which is taken out when it runs, its terms as JSON, texts…
--
-- The index holds ids by the time at which their records end, or were made where the table has no end. The sizes hold
-- the bytes of each record and, under '', their sum. A row is 'VERSION GROUP BYTES TEXT'.
local want = cjson.decode(ARGV[2])
local id, owners, name, tenant = want.id, want.owners or {}, want.name, want.tenant
local RECORD, ROWS, ORDER = key(name, tenant, id), key(name .. '-rows', tenant, id), key(name .. '-order', tenant, id)
local INDEX, SIZES, SWITCH = key(name .. 's', tenant), key(name .. '-sizes', tenant), key(name .. '-switch', tenant)
-- The partition's records with an end of their own, and its tenants with records
local ENDING, TENANTS = key(name .. 's-ending'), key(name .. 's-tenants')
local now = now_ms()

local function held(name) return tonumber(redis.call('HGET', SIZES, name)) or 0 end

-- Counts more or fewer bytes of the record
local function count(bytes)
  if bytes == 0 then return end
  redis.call('HINCRBY', SIZES, id, whole(bytes))
  redis.call('HINCRBY', SIZES, '', whole(bytes))
  local left = want.keep_ms and redis.call('PTTL', INDEX) or -1
  if left > 0 and redis.call('PTTL', SIZES) == -1 then redis.call('PEXPIRE', SIZES, left) end
end

-- Takes an id out of the index, and its bytes out of the sum
local function drop(one)
  redis.call('ZREM', INDEX, one)
  local bytes = redis.call('HGET', SIZES, one)
  if bytes then
    redis.call('HDEL', SIZES, one)
    if redis.call('HINCRBY', SIZES, '', 0 - bytes) <= 0 then redis.call('HDEL', SIZES, '') end
  end
  if want.tenants and redis.call('EXISTS', INDEX) == 0 then redis.call('SREM', TENANTS, tenant) end
end

-- Lists the id until then. The keys of the tenant end with its last record
local function list(keep_ms)
  redis.call('ZADD', INDEX, whole(now + keep_ms), id)
  for _, key in ipairs({INDEX, SIZES}) do
    if redis.call('PTTL', key) < keep_ms then redis.call('PEXPIRE', key, whole(keep_ms)) end
  end
end

-- Keeps the record for as long as the table keeps one
local function keep()
  if want.tenants then redis.call('SADD', TENANTS, tenant) end
  if want.keep_ms then
    list(want.keep_ms)
    for _, key in ipairs({RECORD, ROWS, ORDER}) do redis.call('PEXPIRE', key, whole(want.keep_ms)) end
  elseif not redis.call('ZSCORE', INDEX, id) then
    redis.call('ZADD', INDEX, whole(now_us()), id)
  end
  end_with_records(RECORD)
end

-- Whether so many more bytes are too many: 'long' for the record, 'full' for the tenant
local function too_many(bytes)
  if bytes <= 0 then return end
  if want.record_bytes and held(id) + bytes > want.record_bytes then return 'long' end
  if want.most_bytes and held('') + bytes > want.most_bytes then return 'full' end
end

-- Writes or deletes a row, and returns by how many bytes the record changes
local function set_row(row, value)
  local old, bytes = redis.call('HGET', ROWS, row) or nil, 0
  for sign, given in pairs({[-1] = old, [1] = value}) do
    local group, size = string.match(given, '^%S+ (%S+) (%d+) ')
    if group ~= '-' then redis.call('HINCRBY', RECORD, 'rows:' .. group, sign) end
    bytes = bytes + sign * size
  end
  if value then
    redis.call('HSET', ROWS, row, value)
  else
    redis.call('HDEL', ROWS, row)
    redis.call('ZREM', ORDER, row)
  end
  return bytes
end

-- Stores a record, or adds rows to one. Texts: its fields and their values, then rows and theirs
function steps.put()
  local known, first = redis.call('EXISTS', RECORD) == 1, 2 + 2 * (want.fields or 0)
  local bytes, rows = want.size and want.size - held(id) or 0, (#ARGV - first + 1) / 2
  if want.switches and redis.call('EXISTS', SWITCH) == 0 then return {'off'} end
  if has_changed(want.guard) then return {'stale'} end
  if is_erased(owners) then return {'erased'} end
  if want.known and not known then return {'gone'} end
  if want.most and not want.oldest_out and not known and not redis.call('ZSCORE', INDEX, id)
    and redis.call('ZCARD', INDEX) >= want.most then return {'many'} end
  for place = first, #ARGV, 2 do
    if redis.call('HEXISTS', ROWS, ARGV[place]) == 1 then
      if want.new_rows then return {'duplicate'} end
      rows = rows - 1
    end
    bytes = bytes + string.match(ARGV[place + 1], '^%S+ %S+ (%d+) ')
  end
  if want.most_rows and redis.call('HLEN', ROWS) + rows > want.most_rows then return {'rows'} end
  for _, owner in ipairs(owners) do
    local entries = redis.call('HGET', key('owned', owner.lane), RECORD) or ''
    if want.owner_bytes and not has_line(entries, owner.entry) then
      bytes = bytes + want.owner_bytes + 2 * #owner.entry
    end
  end
  local refused = too_many(bytes)
  if refused then return {refused} end
  if first > 2 then redis.call('HSET', RECORD, unpack(ARGV, 2, first - 1)) end
  for place = first, #ARGV, 2 do
    bytes = bytes - string.match(ARGV[place + 1], '^%S+ %S+ (%d+) ') + set_row(ARGV[place], ARGV[place + 1])
    redis.call('ZADD', ORDER, redis.call('HINCRBY', RECORD, 'next', 1), ARGV[place])
  end
  count(bytes)
  own(owners, RECORD)
  keep()
  local reply, over = {'kept'}, want.oldest_out and redis.call('ZCARD', INDEX) - want.most or 0
  for _, one in ipairs(over > 0 and redis.call('ZRANGE', INDEX, 0, over - 1) or {}) do
    drop(one)
    reply[#reply + 1] = one
  end
  return reply
end

-- Takes bytes for a record that is being made. Returns full or taken
function steps.reserve()
  if redis.call('HEXISTS', SIZES, id) == 0 then
    if too_many(want.size) then return {'full'} end
    count(want.size)
    list(want.lease_ms)
  end
  return {'taken'}
end

-- Gives back what was taken for a record that was not stored
function steps.release()
  if redis.call('EXISTS', RECORD) == 0 then drop(id) end
  return {}
end

-- Returns fields of a record, and keeps it for as long again. Texts: the fields' names
function steps.renew()
  if redis.call('EXISTS', RECORD) == 0 then return {} end
  keep()
  return redis.call('HMGET', RECORD, unpack(ARGV, 2))
end

-- Replaces fields of a record. Texts: fields and their values
function steps.change()
  if redis.call('EXISTS', RECORD) == 0 then return {'gone'} end
  if has_changed(want.guard) then return {'stale'} end
  local bytes = 0
  for place = 2, #ARGV, 2 do bytes = bytes + #ARGV[place + 1] - redis.call('HSTRLEN', RECORD, ARGV[place]) end
  local refused = want.counted and not want.anyway and too_many(bytes)
  if refused then return {refused} end
  if #ARGV > 1 then redis.call('HSET', RECORD, unpack(ARGV, 2)) end
  if want.counted then count(bytes) end
  if want.ends_at == 0 then redis.call('ZREM', ENDING, tenant .. ' ' .. id) end
  if (want.ends_at or 0) > 0 then redis.call('ZADD', ENDING, want.ends_at, tenant .. ' ' .. id) end
  return {'changed'}
end

-- Deletes a record with its rows, or refuses while it has any
function steps.delete()
  if want.empty and redis.call('HLEN', ROWS) > 0 then return {'rows'} end
  drop(id)
  disown(RECORD)
  redis.call('ZREM', ENDING, tenant .. ' ' .. id)
  redis.call('DEL', ROWS, ORDER)
  return {redis.call('DEL', RECORD) == 1 and 'deleted' or 'gone'}
end

-- Replaces a row that is the same still. Texts: the row, its value, the new value
function steps.change_row()
  if redis.call('HGET', ROWS, ARGV[2]) ~= ARGV[3] then return {'gone'} end
  local size = '^%S+ %S+ (%d+) '
  local refused = too_many(string.match(ARGV[4], size) - string.match(ARGV[3], size))
  if refused then return {refused} end
  count(set_row(ARGV[2], ARGV[4]))
  return {'changed'}
end

-- Deletes a row. Texts: the row
function steps.delete_row()
  if redis.call('HEXISTS', ROWS, ARGV[2]) == 0 then return {'gone'} end
  count(set_row(ARGV[2], nil))
  return {'deleted'}
end

-- Returns rows behind one ('' = from the beginning), and whether there are more. Texts: the row
function steps.rows()
  if redis.call('EXISTS', RECORD) == 0 then return {'gone'} end
  local start = 0
  if ARGV[2] ~= '' then
    local rank = redis.call(want.newest and 'ZREVRANK' or 'ZRANK', ORDER, ARGV[2])
    if not rank then return {'after'} end
    start = rank + 1
  end
  local found = redis.call(want.newest and 'ZREVRANGE' or 'ZRANGE', ORDER, start, start + want.limit, 'WITHSCORES')
  local reply = {'found', tostring(#found > 2 * want.limit)}
  for place = 1, math.min(#found, 2 * want.limit), 2 do
    reply[#reply + 1] = found[place]
    reply[#reply + 1] = found[place + 1]
    reply[#reply + 1] = redis.call('HGET', ROWS, found[place])
  end
  return reply
end

if want.keep_ms then
  for _, one in ipairs(redis.call('ZRANGEBYSCORE', INDEX, '-inf', now, 'LIMIT', 0, 1000)) do drop(one) end
end
