"""The atomic steps of settling a user's writes that may be on some copies only, as Lua scripts.

KEYS and claims are those of ``erasure_scripts``. ``memory_store.redis.settling`` documents the protocol. The field
``settling`` of ``notes`` is the time (ms) until which one store settles alone, and the name of that settling.
"""

from typing import Final

from memory_store.redis.erasure_scripts import GATED

REFUSE: Final = (
    GATED
    + """
-- ARGV: claims, the write's name. Marks it as refused; it stays listed, since Qdrant may still carry it out
return each_claim(function(claim, fence, erasures, writing, notes)
  local note = redis.call('HGET', notes, ARGV[2])
  if note and note:sub(1, 1) ~= '!' then redis.call('HSET', notes, ARGV[2], '!' .. note) end
  return 'ok'
end)
"""
)

SETTLE: Final = (
    GATED
    + """
-- ARGV: one claim, the settling's name, ms that it may take, generation. Returns 'moved', 'none', 'ok <names and
-- notes>', or 'wait' while the user is erased, or has a write that is on its way or a settling
if not is_open(ARGV[4]) then return {'moved'} end
return each_claim(function(claim, fence, erasures, writing, notes)
  if until_of(notes) > now_ms() then return 'wait' end
  for i, text in ipairs(redis.call('HGETALL', erasures)) do
    if i % 2 == 1 and text:sub(1, 6) == 'until ' and underway(erasures, text:sub(7)) then return 'wait' end
  end
  local counts, each = states_of(writing, notes)
  if counts.refused + counts.dead == 0 then
    forget_user(notes, claim.user)
    return 'none'
  end
  if counts.open > 0 then return 'wait' end
  local ids = {}
  for i, one in ipairs(each) do ids[i] = one[2]:sub(2, -2) end
  enter(ARGV[2], '[' .. table.concat(ids, ',') .. ']', ARGV[3])
  redis.call('HSET', notes, 'settling', (now_ms() + ARGV[3]) .. ' ' .. ARGV[2])
  redis.call('ZADD', writing, now_ms() + ARGV[3], ARGV[2])
  redis.call('PEXPIRE', writing, 2 * ARGV[3])
  return 'ok ' .. cjson.encode(each)
end)
"""
)

SETTLED: Final = (
    GATED
    + """
-- ARGV: one claim, the settling's name, generation, the names of the writes that are settled as JSON, or '' for a
-- settling that has failed: it stays listed, since Qdrant may still carry it out. A write that is still listed keeps
-- its note for the same reason
if ARGV[4] ~= '' then leave(ARGV[2], ARGV[3]) end
return each_claim(function(claim, fence, erasures, writing, notes)
  local mine = redis.call('HGET', notes, 'settling')
  if not mine or mine:match(' (.*)$') ~= ARGV[2] then return 'late' end
  redis.call('HDEL', notes, 'settling')
  if ARGV[4] == '' then return 'ok' end
  redis.call('ZREM', writing, ARGV[2])
  for _, name in ipairs(cjson.decode(ARGV[4])) do
    local note = redis.call('HGET', notes, name)
    if note and state_of(writing, name, '~') == 'settled' then
      redis.call('HSET', notes, name, '~' .. note:gsub('^[!~]', ''))
    else
      redis.call('HDEL', notes, name)
    end
  end
  forget_user(notes, claim.user)
  return 'ok'
end)
"""
)

SOME: Final = (
    GATED
    + """
-- ARGV: how many. Users with writes that are not over, by chance. KEYS: those of the gate alone
return redis.call('SRANDMEMBER', users, ARGV[1])
"""
)
