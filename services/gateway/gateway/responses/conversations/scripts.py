"""The steps on conversations that must be atomic, in Lua.

``KEYS[1]`` to ``KEYS[6]`` are the user's erasures, the tenant's index, its sizes, the record, the order of the items,
the items. The record's fields ``owner:…`` name the users who have a part in it: the value is the user, the field has
agent and run too. All keys of a tenant share a tag, so a script may name the users'
indexes itself; ``prefix`` is the beginning of their names.
"""

from typing import Final

from gateway.responses.scripts import PRELUDE

_OWNERS: Final = """
local function owners()
  local found, pairs_ = {}, redis.call('HGETALL', KEYS[4])
  for place = 1, #pairs_, 2 do
    if string.sub(pairs_[place], 1, 6) == 'owner:' then
      table.insert(found, {string.sub(pairs_[place], 7), pairs_[place + 1]})
    end
  end
  return found
end
"""

ADD: Final = (
    PRELUDE
    + _OWNERS
    + """
-- ARGV: id, keep ms, the tenant's quota of bytes, its most conversations, the most bytes and items of one, owner ('' =
-- nobody), the owner's user, prefix, erasures at the beginning ('' = not compared), created at ('' = it exists),
-- metadata, number of scopes, scopes…, ids and texts of the items…
-- Returns: added, erased, gone, many, full, long, duplicate
local id, keep, owner, prefix, first = ARGV[1], ARGV[2], ARGV[7], ARGV[9], 14 + ARGV[13]
local scopes, bytes, count, is_new = {}, 0, (#ARGV - first + 1) / 2, ARGV[11] ~= ''
for place = 14, first - 1 do table.insert(scopes, ARGV[place]) end
if ARGV[10] ~= '' and erasures(KEYS[1], scopes) ~= ARGV[10] then return 'erased' end
if not is_new and redis.call('EXISTS', KEYS[4]) == 0 then return 'gone' end
if is_new and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 'many' end
if redis.call('ZCARD', KEYS[5]) + count > tonumber(ARGV[6]) then return 'long' end
for place = first, #ARGV do bytes = bytes + #ARGV[place] end
for place = first, #ARGV, 2 do
  if redis.call('HEXISTS', KEYS[6], ARGV[place]) == 1 then return 'duplicate' end
end
if is_new then bytes = bytes + 1024 + #ARGV[12] end
local known = owner == '' or redis.call('HEXISTS', KEYS[4], 'owner:' .. owner) == 1
if not known then bytes = bytes + 128 + 2 * #owner end
if (tonumber(redis.call('HGET', KEYS[3], id)) or 0) + bytes > tonumber(ARGV[5]) then return 'long' end
if (tonumber(redis.call('HGET', KEYS[3], '')) or 0) + bytes > tonumber(ARGV[3]) then return 'full' end
if is_new then redis.call('HSET', KEYS[4], 'created_at', ARGV[11], 'metadata', ARGV[12]) end
if not known then redis.call('HSET', KEYS[4], 'owner:' .. owner, ARGV[8]) end
local number = redis.call('HINCRBY', KEYS[4], 'next', count) - count
for place = first, #ARGV, 2 do
  redis.call('ZADD', KEYS[5], number, ARGV[place])
  redis.call('HSET', KEYS[6], ARGV[place], ARGV[place + 1])
  number = number + 1
end
redis.call('HINCRBY', KEYS[3], id, bytes)
redis.call('HINCRBY', KEYS[3], '', bytes)
local ends = string.format('%.0f', now + keep)
redis.call('ZADD', KEYS[2], ends, id)
for place = 2, 6 do redis.call('PEXPIRE', KEYS[place], keep) end
for _, whose in ipairs(owners()) do
  local index = prefix .. whose[2]
  redis.call('ZREMRANGEBYSCORE', index, '-inf', now)
  redis.call('ZADD', index, ends, id .. ' ' .. whose[1])
  redis.call('PEXPIRE', index, keep)
end
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
-- ARGV: id, metadata. Returns 0 if there is no such conversation
local before = redis.call('HGET', KEYS[4], 'metadata')
if not before then return 0 end
redis.call('HSET', KEYS[4], 'metadata', ARGV[2])
redis.call('HINCRBY', KEYS[3], ARGV[1], #ARGV[2] - #before)
redis.call('HINCRBY', KEYS[3], '', #ARGV[2] - #before)
return 1
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
    + _OWNERS
    + """
-- ARGV: id, prefix. Returns how many were deleted
for _, whose in ipairs(owners()) do redis.call('ZREM', ARGV[2] .. whose[2], ARGV[1] .. ' ' .. whose[1]) end
drop(ARGV[1])
redis.call('DEL', KEYS[5], KEYS[6])
return redis.call('DEL', KEYS[4])
"""
)
