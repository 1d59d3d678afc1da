-- What a step compares before it writes: the owners of a record, and a hash that its caller has read

-- How long an erasure and a lane's newest token are remembered: longer than any work takes
local KEEP_MS = 7 * 24 * 3600 * 1000

-- Whether a hash has changed: its guard is its key, the digest of what some fields held, and their names
local function has_changed(guard)
  if not guard then return false end
  local values = redis.call('HMGET', guard.key, unpack(guard.names))
  for i, value in ipairs(values) do values[i] = value and #value .. ':' .. value or '-' end
  return redis.sha1hex(table.concat(values, ' ')) ~= guard.digest
end

-- The terms of a record's owner: began, the newest token when the work began, its scopes, tenant, user, the digest of the
-- lane, the entry in the user's index
-- The token of the newest erasure of its scopes that is marked here, 0 without one
local function newest_mark(owner)
  local newest = 0
  for _, token in ipairs(redis.call('HMGET', key('erased', owner.lane), unpack(owner.scopes))) do
    newest = math.max(newest, tonumber(token or 0))
  end
  return newest
end
local function is_erased(owners)
  for _, owner in ipairs(owners) do
    if newest_mark(owner) > owner.began then return true end
  end
end
-- Whether a text has a line
local function has_line(lines, line) return string.find('\n' .. lines .. '\n', '\n' .. line .. '\n', 1, true) end
-- Lets a key that stays end after so many ms (math.huge = never)
local function end_in(key, ms)
  if ms == math.huge then redis.call('PERSIST', key) else redis.call('PEXPIRE', key, whole(ms)) end
end
-- The ms until the last of these keys ends: 0 where all are gone, math.huge where one has no end
local function last_end(keys)
  local last = 0
  for _, key in ipairs(keys) do
    local left = redis.call('PTTL', key)
    if left == -1 then return math.huge end
    last = math.max(last, left)
  end
  return last
end
-- Lets an index end with the last of its records, unless one has no end or they are very many; and its user among the
-- tenant's owners, who are ordered by the ends of their indexes, with it
local function settle(index, owners, user)
  local longest = redis.call('HLEN', index) > 200 and math.huge or last_end(redis.call('HKEYS', index))
  end_in(index, longest)
  redis.call('ZADD', owners, longest == math.huge and '+inf' or whole(now_ms() + longest), user)
  redis.call('ZREMRANGEBYSCORE', owners, '-inf', now_ms())
  local last = redis.call('ZREVRANGE', owners, 0, 0, 'WITHSCORES')[2]
  if last then end_in(owners, tonumber(last) - now_ms()) end
end
-- The indexes that have a record, each with the key of the tenant's owners, and the user
local function homes_of(record) return cjson.decode(redis.call('HGET', record, 'owned') or '{}') end
-- Lets the indexes of a record end with their last record
local function end_with_records(record)
  for index, home in pairs(homes_of(record)) do settle(index, home[1], home[2]) end
end
-- Notes a record, which is a hash; `end_with_records` follows. At every sixteenth in an index, some that are gone are taken out
local function own(owned, record)
  local homes = homes_of(record)
  for _, owner in ipairs(owned) do
    local index, owners, entry = key('owned', owner.lane), key('owners', owner.tenant), owner.entry
    if entry then
      local entries = redis.call('HGET', index, record) or ''
      if not has_line(entries, entry) then redis.call('HSET', index, record, entry .. '\n' .. entries) end
      homes[index] = {owners, owner.user}
      if redis.call('HLEN', index) % 16 == 0 then
        for _, old in ipairs(redis.call('HRANDFIELD', index, 32)) do
          if redis.call('EXISTS', old) == 0 then redis.call('HDEL', index, old) end
        end
      end
    end
  end
  if next(homes) then redis.call('HSET', record, 'owned', cjson.encode(homes)) end
end
-- Takes a record that is deleted out of its owners' indexes
local function disown(record)
  for index, home in pairs(homes_of(record)) do
    redis.call('HDEL', index, record)
    settle(index, home[1], home[2])
  end
end

-- Notes an erasure of a scope among a user's marks, unless a newer one is there
local function mark_erased(marks, scope, token)
  redis.call('PERSIST', marks) -- a full Redis lets a script begin with this command
  local newest = redis.call('HGET', marks, scope)
  if not newest or tonumber(newest) < tonumber(token) then redis.call('HSET', marks, scope, token) end
  redis.call('PEXPIRE', marks, KEEP_MS)
end

-- KEYS: a user's marks; ARGV: scope, token
function steps.mark() mark_erased(KEYS[1], ARGV[1], ARGV[2]) end

-- KEYS: the tenant's owners. Returns the users with records
function steps.listed() return redis.call('ZRANGEBYSCORE', KEYS[1], whole(now_ms()), '+inf') end

-- KEYS: a user's index, the tenant's owners; ARGV: user. Forgets the name of a user without records
function steps.leave() settle(KEYS[1], KEYS[2], ARGV[1]) end
