"""The steps on vector stores that must be atomic, in Lua.

``KEYS[1]`` is the vector store, ``KEYS[2]`` the hash of its files, whose values are ``JOB STATUS BYTES JSON``. It
counts its files by status in ``count:STATUS``, and their bytes in ``bytes``.
"""

from typing import Final

from memloop_state.owners import OWNERS

_PUT: Final = """
local function put(file, value)
  local old = redis.call('HGET', KEYS[2], file)
  for sign, given in pairs({[-1] = old or nil, [1] = value or nil}) do
    local status, bytes = string.match(given, '^%S+ (%S+) (%d+) ')
    redis.call('HINCRBY', KEYS[1], 'count:' .. status, sign)
    if bytes ~= '0' then redis.call('HINCRBY', KEYS[1], 'bytes', string.format('%.0f', sign * bytes)) end
  end
  if value then redis.call('HSET', KEYS[2], file, value) else redis.call('HDEL', KEYS[2], file) end
end
"""

CREATE: Final = (
    OWNERS
    + """
-- KEYS[3] the tenant's vector stores, then those of its owners; ARGV: id, time, most of a tenant, its owners, fields…
-- Returns full, erased or created
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[3]) then return 'full' end
if is_erased(4, 4) then return 'erased' end
redis.call('HSET', KEYS[1], unpack(ARGV, 5 + 4 * ARGV[4]))
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
own(4, 4, KEYS[1])
return 'created'
"""
)

NEXT: Final = """
-- Returns the number of the next file, 0 without the vector store
if redis.call('HEXISTS', KEYS[1], 'head') == 0 then return 0 end
return redis.call('HINCRBY', KEYS[1], 'next', 1)
"""

UPDATE: Final = """
-- ARGV: head. Returns 0 without the vector store
if redis.call('HEXISTS', KEYS[1], 'head') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'head', ARGV[1])
return 1
"""

DELETE: Final = (
    OWNERS
    + """
-- KEYS[3] the tenant's vector stores; ARGV: id. Returns 0 while there are files
if redis.call('HLEN', KEYS[2]) > 0 then return 0 end
disown(KEYS[1])
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
"""
)

ATTACH: Final = (
    _PUT
    + """
-- KEYS[3] the stores with the file; ARGV: id, file, value, most files. Returns gone, full or attached
if redis.call('HEXISTS', KEYS[1], 'head') == 0 then return 'gone' end
local known = redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1
if not known and redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[4]) then return 'full' end
put(ARGV[2], ARGV[3])
redis.call('SADD', KEYS[3], ARGV[1])
return 'attached'
"""
)

CHANGE: Final = (
    _PUT
    + """
-- ARGV: file, job, value, most bytes. Replaces a file's value if the job is still its own: gone, full or changed
local old = redis.call('HGET', KEYS[2], ARGV[1])
if not old or string.match(old, '^(%S+) ') ~= ARGV[2] then return 'gone' end
local before = tonumber(string.match(old, '^%S+ %S+ (%d+) '))
local after = tonumber(string.match(ARGV[3], '^%S+ %S+ (%d+) '))
local sum = tonumber(redis.call('HGET', KEYS[1], 'bytes') or 0)
if after > before and sum + after - before > tonumber(ARGV[4]) then return 'full' end
put(ARGV[1], ARGV[3])
return 'changed'
"""
)

DETACH: Final = (
    _PUT
    + """
-- KEYS[3] the stores with the file; ARGV: id, file. Returns how many were there
if redis.call('HEXISTS', KEYS[2], ARGV[2]) == 0 then return 0 end
put(ARGV[2], nil)
redis.call('SREM', KEYS[3], ARGV[1])
return 1
"""
)

TOUCH: Final = """
-- KEYS[2] the vector stores that expire; ARGV: member, now in seconds, its life in seconds (0 = for ever), 1 = renews
if redis.call('HEXISTS', KEYS[1], 'head') == 0 then return 0 end
if ARGV[4] == '1' then redis.call('HSET', KEYS[1], 'active', ARGV[2]) end
local active = redis.call('HGET', KEYS[1], 'active')
if ARGV[3] == '0' then redis.call('ZREM', KEYS[2], ARGV[1])
else redis.call('ZADD', KEYS[2], active + ARGV[3], ARGV[1]) end
return 1
"""
