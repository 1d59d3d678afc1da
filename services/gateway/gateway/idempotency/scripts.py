"""The Lua scripts that change a record of an idempotency key. Times are in milliseconds of Redis's clock."""

from typing import Final

TAKE: Final = """
-- KEYS[1] record; ARGV: hash of the request, the attempt's name, lease ms, keep ms
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local kept = redis.call('HMGET', KEYS[1], 'body', 'until', 'seed', 'status', 'kind', 'answer', 'owner')
if kept[1] and kept[1] ~= ARGV[1] then return {'other'} end
if kept[4] then return {'done', kept[4], kept[5], kept[6]} end
if kept[2] and tonumber(kept[2]) > now and kept[7] ~= ARGV[2] then return {'busy'} end
local seed = kept[3] or ARGV[2]
local lease = string.format('%.0f', now + ARGV[3])
redis.call('HDEL', KEYS[1], 'erased')
redis.call('HSET', KEYS[1], 'body', ARGV[1], 'owner', ARGV[2], 'seed', seed, 'until', lease)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'yours', seed}
"""

EXTEND: Final = """
-- KEYS[1] record; ARGV: the attempt's name, lease ms
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
local t = redis.call('TIME')
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2]))
return 1
"""

NOTE: Final = """
-- KEYS[1] records of the subject; ARGV: record, keep ms
local now = redis.call('TIME')[1] * 1000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""

KEEP: Final = """
-- KEYS[1] record; ARGV: the attempt's name, keep ms, status, media type, answer
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
if redis.call('HEXISTS', KEYS[1], 'erased') == 1 then return redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'status', ARGV[3], 'kind', ARGV[4], 'answer', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""

RELEASE: Final = """
-- KEYS[1] record; ARGV: the attempt's name, 'free' (another body may come) or 'again' (the same attempt may)
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
if ARGV[2] == 'free' then return redis.call('DEL', KEYS[1]) end
return redis.call('HDEL', KEYS[1], 'until')
"""

FORGET: Final = """
-- KEYS[1] record: gone, if it has an answer; if not, the answer to come will not be kept
if redis.call('HEXISTS', KEYS[1], 'status') == 1 then return redis.call('DEL', KEYS[1]) end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'erased', 1) end
return 0
"""
