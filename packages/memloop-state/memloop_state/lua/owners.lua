-- What a step compares before it writes: the owners of a record, and a hash that its caller has read
local steps = {}

-- Whether a hash has changed: some fields of it, by their names and the digest of what they held ('' = not asked)
local function has_changed(key, digest, names)
  if digest == '' then return false end
  local values = redis.call('HMGET', key, unpack(names))
  for i, value in ipairs(values) do values[i] = value and #value .. ':' .. value or '-' end
  return redis.sha1hex(table.concat(values, ' ')) ~= digest
end
-- The same, of a digest, the names' number and the names from ARGV[a] on
local function guard_changed(key, a) return has_changed(key, ARGV[a], {unpack(ARGV, a + 2, a + 1 + ARGV[a + 1])}) end

-- A record's owners. KEYS[k..]: of each owner the marks, the index, the tenant's owners. Of each owner: the newest token
-- when the work began ('=' and marks: what they were then), the scopes, the user, the entry in the index ('' = none)
local function owners_at(args, a)
  local owners = {}
  for at = a, a + 4 * (args[a] - 1), 4 do
    owners[#owners + 1] = {began = args[at + 1], scopes = args[at + 2], user = args[at + 3], entry = args[at + 4]}
  end
  return owners
end
-- The tokens of the last erasures of scopes, '-' for each without one
local function marks(key, scopes)
  local found = {}
  for scope in string.gmatch(scopes, '%S+') do found[#found + 1] = redis.call('HGET', key, scope) or '-' end
  return table.concat(found, ' ')
end
local function is_erased(k, owners)
  for place, owner in ipairs(owners) do
    local now = marks(KEYS[k + 3 * (place - 1)], owner.scopes)
    if string.sub(owner.began, 1, 1) == '=' then
      if now ~= string.sub(owner.began, 2) then return true end
    else
      for token in string.gmatch(now, '%d+') do
        if tonumber(token) > tonumber(owner.began) then return true end
      end
    end
  end
end
-- Whether a text has a line
local function has_line(lines, line) return string.find('\n' .. lines .. '\n', '\n' .. line .. '\n', 1, true) end
-- Notes a record, which is a hash. At every sixteenth in an index, some that are gone are taken out
local function own(k, owned, record)
  local indexes = redis.call('HGET', record, 'owned') or ''
  for place, owner in ipairs(owned) do
    local index, owners = KEYS[k + 3 * place - 2], KEYS[k + 3 * place - 1]
    local user, entry = owner.user, owner.entry
    if entry ~= '' then
      local entries = redis.call('HGET', index, record) or ''
      if not has_line(entries, entry) then redis.call('HSET', index, record, entry .. '\n' .. entries) end
      redis.call('PERSIST', index)
      redis.call('HSET', owners, user, index)
      if not has_line(indexes, index) then indexes = index .. '\n' .. indexes end
      if redis.call('HLEN', index) % 16 == 0 then
        for _, old in ipairs(redis.call('HRANDFIELD', index, 32)) do
          if redis.call('EXISTS', old) == 0 then redis.call('HDEL', index, old) end
        end
        local some = redis.call('HRANDFIELD', owners, 8, 'WITHVALUES')
        for place = 1, #some, 2 do
          if redis.call('EXISTS', some[place + 1]) == 0 then redis.call('HDEL', owners, some[place]) end
        end
      end
    end
  end
  if indexes ~= '' then redis.call('HSET', record, 'owned', indexes) end
end
local function indexes_of(record)
  return string.gmatch(redis.call('HGET', record, 'owned') or '', '%S+')
end
-- Takes a record that is deleted out of its owners' indexes
local function disown(record)
  for index in indexes_of(record) do redis.call('HDEL', index, record) end
end
-- Lets the indexes of a record end with their last record, unless one has no end or they are very long
local function end_with_records(record)
  for index in indexes_of(record) do
    local records, longest = redis.call('HLEN', index) <= 200 and redis.call('HKEYS', index) or {}, 0
    for _, one in ipairs(records) do
      local left = redis.call('PTTL', one)
      longest = left == -1 and math.huge or math.max(longest, left)
    end
    if longest > 0 and longest < math.huge then redis.call('PEXPIRE', index, longest) end
  end
end

-- KEYS: a user's marks; ARGV: scope, token, keep ms. A newer erasure's mark stays
function steps.mark()
  local token = redis.call('HGET', KEYS[1], ARGV[1])
  if not token or tonumber(token) < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end

-- KEYS: the tenant's owners. Returns the users with records; those without any more are taken out
function steps.listed()
  local found, users = redis.call('HGETALL', KEYS[1]), {}
  for place = 1, #found, 2 do
    if redis.call('EXISTS', found[place + 1]) == 1 then
      users[#users + 1] = found[place]
    else
      redis.call('HDEL', KEYS[1], found[place])
    end
  end
  return users
end

-- KEYS: the tenant's owners, a user's index; ARGV: user. Forgets the name of a user without records
function steps.leave()
  if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('HDEL', KEYS[1], ARGV[1]) end
end
