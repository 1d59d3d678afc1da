-- Named texts of a hash
local steps = {}

-- KEYS: the hash. ARGV: name, text, the most names ('' = any). Returns 0 when it is full
function steps.put()
  if ARGV[3] ~= '' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0
    and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return 1
end
