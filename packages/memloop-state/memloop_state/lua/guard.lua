-- Whether a hash has changed: some fields of it, by their names and the digest of what they held ('' = not asked)
local function has_changed(key, digest, names)
  if digest == '' then return false end
  local values = redis.call('HMGET', key, unpack(names))
  for i, value in ipairs(values) do values[i] = value and #value .. ':' .. value or '-' end
  return redis.sha1hex(table.concat(values, ' ')) ~= digest
end
-- The same, of a digest, the names' number and the names from ARGV[a] on
local function guard_changed(key, a) return has_changed(key, ARGV[a], {unpack(ARGV, a + 2, a + 1 + ARGV[a + 1])}) end
