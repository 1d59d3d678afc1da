"""The steps on conversations that must be atomic, in Lua.

``KEYS[1]`` to ``KEYS[6]`` are the user's marks, the tenant's index, its sizes, the record, the order of the items, the
items. The record is noted by every user who has a part in it.
"""

from typing import Final

from gateway.responses.scripts import PRELUDE

ADD: Final = (
    PRELUDE
    + """
-- KEYS[7..] those of its owner; ARGV: id, keep ms, the tenant's quota of bytes, its most conversations, the most bytes
-- and items of one, erasures at the beginning ('' = not compared), created at ('' = it exists), metadata, number of
-- scopes, scopes…, its owners, ids and texts of the items…
-- Returns: added, erased, gone, many, full, long, duplicate
local id, keep, owners = ARGV[1], ARGV[2], 11 + ARGV[10]
local first, scopes, bytes, is_new = owners + 1 + 4 * ARGV[owners], {unpack(ARGV, 11, owners - 1)}, 0, ARGV[8] ~= ''
local count = (#ARGV - first + 1) / 2
if ARGV[7] ~= '' and erasures(KEYS[1], scopes) ~= ARGV[7] then return 'erased' end
if not is_new and redis.call('EXISTS', KEYS[4]) == 0 then return 'gone' end
if is_new and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 'many' end
if redis.call('ZCARD', KEYS[5]) + count > tonumber(ARGV[6]) then return 'long' end
for place = first, #ARGV do bytes = bytes + #ARGV[place] end
for place = first, #ARGV, 2 do
  if redis.call('HEXISTS', KEYS[6], ARGV[place]) == 1 then return 'duplicate' end
end
if is_new then bytes = bytes + 1024 + #ARGV[9] end
if ARGV[owners] ~= '0' and not has_line(redis.call('HGET', KEYS[8], KEYS[4]) or '', ARGV[owners + 4]) then
  bytes = bytes + 256 + 2 * #ARGV[owners + 4]
end
if (tonumber(redis.call('HGET', KEYS[3], id)) or 0) + bytes > tonumber(ARGV[5]) then return 'long' end
if (tonumber(redis.call('HGET', KEYS[3], '')) or 0) + bytes > tonumber(ARGV[3]) then return 'full' end
if is_new then redis.call('HSET', KEYS[4], 'created_at', ARGV[8], 'metadata', ARGV[9]) end
local number = redis.call('HINCRBY', KEYS[4], 'next', count) - count
for place = first, #ARGV, 2 do
  redis.call('ZADD', KEYS[5], number, ARGV[place])
  redis.call('HSET', KEYS[6], ARGV[place], ARGV[place + 1])
  number = number + 1
end
redis.call('HINCRBY', KEYS[3], id, bytes)
redis.call('HINCRBY', KEYS[3], '', bytes)
redis.call('ZADD', KEYS[2], string.format('%.0f', now + keep), id)
for place = 2, 6 do redis.call('PEXPIRE', KEYS[place], keep) end
own(7, owners, KEYS[4])
end_with_records(KEYS[4])
return 'added'
"""
)

PAGE: Final = """
-- ARGV: the item to begin after ('' = from the beginning), how many, 1 for newest first
-- Returns found, after (no such item) or gone, whether there are more, and the items
if redis.call('EXISTS', KEYS[4]) == 0 then return {'gone'} end
local start, newest = 0, ARGV[3] == '1'
if ARGV[1] ~= '' then
  local rank = redis.call(newest and 'ZREVRANK' or 'ZRANK', KEYS[5], ARGV[1])
  if not rank then return {'after'} end
  start = rank + 1
end
local ids = redis.call(newest and 'ZREVRANGE' or 'ZRANGE', KEYS[5], start, start + ARGV[2])
local reply = {'found', tostring(#ids > tonumber(ARGV[2]))}
for place = 1, math.min(#ids, tonumber(ARGV[2])) do
  table.insert(reply, redis.call('HGET', KEYS[6], ids[place]))
end
return reply
"""

ROOM: Final = (
    PRELUDE
    + """
-- ARGV: id, scopes…. Returns whether it exists, the bytes of the tenant's conversations and of this one, the number of
-- its items, and the user's erasures
local id = table.remove(ARGV, 1)
local sum, own = redis.call('HGET', KEYS[3], ''), redis.call('HGET', KEYS[3], id)
return {redis.call('EXISTS', KEYS[4]), sum or '0', own or '0', redis.call('ZCARD', KEYS[5]), erasures(KEYS[1], ARGV)}
"""
)

UPDATE: Final = """
-- ARGV: id, metadata, the tenant's quota of bytes. Returns gone, full or updated
local before = redis.call('HGET', KEYS[4], 'metadata')
if not before then return 'gone' end
local more = #ARGV[2] - #before
if more > 0 and (tonumber(redis.call('HGET', KEYS[3], '')) or 0) + more > tonumber(ARGV[3]) then return 'full' end
redis.call('HSET', KEYS[4], 'metadata', ARGV[2])
redis.call('HINCRBY', KEYS[3], ARGV[1], more)
redis.call('HINCRBY', KEYS[3], '', more)
return 'updated'
"""

DELETE_ITEM: Final = """
-- ARGV: id of the conversation, of the item. Returns 0 if there is no such item
local item = redis.call('HGET', KEYS[6], ARGV[2])
if not item then return 0 end
redis.call('HDEL', KEYS[6], ARGV[2])
redis.call('ZREM', KEYS[5], ARGV[2])
redis.call('HINCRBY', KEYS[3], ARGV[1], -#item - #ARGV[2])
redis.call('HINCRBY', KEYS[3], '', -#item - #ARGV[2])
return 1
"""

DELETE: Final = (
    PRELUDE
    + """
-- ARGV: id. Returns how many were deleted
disown(KEYS[4])
drop(ARGV[1])
redis.call('DEL', KEYS[5], KEYS[6])
return redis.call('DEL', KEYS[4])
"""
)
