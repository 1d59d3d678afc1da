"""The atomic steps of writes and erasures as Lua scripts. ``memory_store.redis.erasures`` documents the protocol.

Each of a write's three steps takes any number of *claims* of one partition: KEYS are fence, erasures, writing and notes
of each claim in turn, ARGV[1] is a JSON list of them, ``{"token": "7" or "", "began": "7" or "", "mark": "…", "scopes":
["…", …], "user": "…"}``. The reply is one text for each claim, whose first word is ``ok``, ``stale``, ``erased``,
``moved``, ``late``, ``noted``, ``unsettled`` or ``settling``. The steps take the gate's KEYS besides
(``memory_store.redis.gate_scripts``).

The hash ``notes`` has the points of each write of the user that is not over, by the write's name, as JSON, after
a ``!`` if it was refused and a ``~`` if it was settled then (``memory_store.redis.settling_scripts``).

The hash ``erasures`` has up to three fields for every erased scope: its *mark*, a text that every erasure changes when
it begins, its last token (``token …``), and, while one is under way, the time (ms) at which it counts as dead
(``until …``).
"""

from typing import Final

from memloop_state.link import LUA_CLOCK
from memory_store.redis.fencing import STALE
from memory_store.redis.gate_scripts import GATE

_ERASURES: Final = (
    STALE
    + """
local function underway(erasures, scope)
  local till = redis.call('HGET', erasures, 'until ' .. scope)
  return till and tonumber(till) > now_ms()
end
-- The marks of all scopes that the claim lies in; nil while one of them is being erased
local function mark_of(erasures, scopes)
  local marks = {}
  for i, scope in ipairs(scopes) do
    if underway(erasures, scope) then return nil end
    marks[i] = redis.call('HGET', erasures, scope) or ''
  end
  return table.concat(marks, ' ')
end
-- Whether a scope was erased after the write was accepted
local function is_older(erasures, claim)
  if claim.began == '' then return false end
  for _, scope in ipairs(claim.scopes) do
    local token = redis.call('HGET', erasures, 'token ' .. scope)
    if token and tonumber(token) > tonumber(claim.began) then return true end
  end
  return false
end
local function each_claim(step)
  local replies = {}
  for i, claim in ipairs(cjson.decode(ARGV[1])) do
    replies[i] = step(claim, KEYS[4 * i - 3], KEYS[4 * i - 2], KEYS[4 * i - 1], KEYS[4 * i])
  end
  return replies
end
"""
)
_NOTES: Final = """
local function until_of(notes)
  return tonumber((redis.call('HGET', notes, 'settling') or '0 '):match('^%d+'))
end
-- 'refused'; 'dead': its store is; 'settled', but Qdrant may still carry it out; or 'open'
local function state_of(writing, name, note)
  local first, till = note:sub(1, 1), redis.call('ZSCORE', writing, name)
  if first == '!' then return 'refused' end
  if not till or tonumber(till) <= now_ms() then return 'dead' end
  return first == '~' and 'settled' or 'open'
end
-- How many of the user's writes are in each state, and all of them as name, note, name, note …
local function states_of(writing, notes)
  local counts, each = {refused = 0, dead = 0, settled = 0, open = 0}, {}
  if redis.call('HLEN', notes) == 0 then return counts, each end
  local flat = redis.call('HGETALL', notes)
  for i = 1, #flat, 2 do
    if flat[i] ~= 'settling' then
      local state = state_of(writing, flat[i], flat[i + 1])
      counts[state] = counts[state] + 1
      each[#each + 1] = {flat[i], (flat[i + 1]:gsub('^[!~]', ''))}
    end
  end
  return counts, each
end
local function forget_user(notes, user)
  if redis.call('HLEN', notes) == 0 then redis.call('SREM', users, user) end
end
"""
_HEAD: Final = LUA_CLOCK + _ERASURES
GATED: Final = GATE + _ERASURES + _NOTES
"""What scripts on claims stand on, for ``settling_scripts`` too."""

BEGIN: Final = (
    GATED
    + """
-- ARGV: claims, keep ms. Returns 'ok <mark>', 'stale <newest token>', 'erased', or 'unsettled' where an earlier write
-- of the user may be on some copies only
return each_claim(function(claim, fence, erasures, writing, notes)
  local newest = stale(fence, claim.token, ARGV[2])
  if newest ~= '' then return 'stale ' .. newest end
  local mark = mark_of(erasures, claim.scopes)
  if not mark or is_older(erasures, claim) then return 'erased' end
  local counts = states_of(writing, notes)
  return counts.refused + counts.dead > 0 and 'unsettled' or 'ok ' .. mark
end)
"""
)

OPEN: Final = (
    GATED
    + """
-- ARGV: claims, keep ms, the write's name, ms that its points may take, generation, note, 1 if points have copies
local there, entered = is_open(ARGV[5]), false
return each_claim(function(claim, fence, erasures, writing, notes)
  if not there then return 'moved' end
  if until_of(notes) > now_ms() then return 'settling' end
  local newest = stale(fence, claim.token, ARGV[2])
  if newest ~= '' then return 'stale ' .. newest end
  if mark_of(erasures, claim.scopes) ~= claim.mark then return 'erased' end
  if not entered then enter(ARGV[3], ARGV[6], ARGV[4]) end
  entered = true
  redis.call('ZADD', writing, now_ms() + ARGV[4], ARGV[3])
  redis.call('PEXPIRE', writing, 2 * ARGV[4])
  if ARGV[7] == '1' then
    redis.call('HSET', notes, ARGV[3], ARGV[6])
    redis.call('SADD', users, claim.user)
  end
  return 'ok'
end)
"""
)

CLOSE: Final = (
    GATED
    + """
-- ARGV: claims, the write's name, generation. A write that is listed no more took too long: an erasure or a copy may
-- not have waited for it
local counts, noted = leave(ARGV[2], ARGV[3])
return each_claim(function(claim, fence, erasures, writing, notes)
  local listed = redis.call('ZREM', writing, ARGV[2]) == 1
  redis.call('HDEL', notes, ARGV[2])
  forget_user(notes, claim.user)
  if not listed and mark_of(erasures, claim.scopes) ~= claim.mark then return 'erased' end
  if not counts then return 'late' end
  return noted and 'noted' or 'ok'
end)
"""
)

START: Final = (
    _HEAD
    + """
-- KEYS: fence, erasures; ARGV: token or '', keep ms, scope, lease ms. Returns {newest token or '', mark}
local newest = stale(KEYS[1], ARGV[1], ARGV[2])
if newest ~= '' then return {newest, ''} end
local mark = string.format('%.0f', now_us())
redis.call('HSET', KEYS[2], ARGV[3], mark, 'until ' .. ARGV[3], now_ms() + ARGV[4])
if ARGV[1] ~= '' then redis.call('HSET', KEYS[2], 'token ' .. ARGV[3], ARGV[1]) end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return {'', mark}
"""
)

ENTER: Final = (
    GATED
    + """
-- KEYS: writing; ARGV: generation, the erasure's name, note, lease ms. Returns 'moved', or 'wait' while writes of the
-- lane are on their way (those whose time is over count no more) or stores may still answer from another collection
if not is_open(ARGV[1]) then return 'moved' end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms())
if redis.call('ZCARD', KEYS[1]) > 0 then return 'wait' end
if tonumber(redis.call('HGET', gate, 'settles') or 0) > now_ms() then return 'wait' end
enter(ARGV[2], ARGV[3], ARGV[4])
return 'ok'
"""
)

END: Final = (
    GATED
    + """
-- KEYS: erasures; ARGV: scope, mark, generation, the erasure's name. Returns 1, 2 if a copy has a note of it, or 0 if
-- the deletion may not be whole: the lease ran out, another erasure of the same scope began, or a copy did not wait
local counts, noted = leave(ARGV[4], ARGV[3])
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
local held = underway(KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[1], 'until ' .. ARGV[1])
if not (held and counts) then return 0 end
return noted and 2 or 1
"""
)
