"""The atomic steps of writes and erasures as Lua scripts. ``memory_store.redis.erasures`` documents the protocol.

Each of a write's three steps takes any number of *claims* of one partition: KEYS are fence, erasures and writing of
each claim in turn, ARGV[1] is a JSON list of them, ``{"token": "7" or "", "began": "7" or "", "mark": "…", "scopes":
["…", …]}``. The reply is one text for each claim, whose first word is ``ok``, ``stale``, ``erased``, ``moved`` or
``late``. The steps around a change of the collection take the gate's KEYS besides
(``memory_store.redis.gate_scripts``).

The hash ``erasures`` has up to three fields for every erased scope: its *mark*, a text that every erasure changes when
it begins, its last token (``token …``), and, while one is under way, the time (ms) at which it counts as dead
(``until …``).
"""

from typing import Final

from memloop_service.redis_link import LUA_CLOCK
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
    replies[i] = step(claim, KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i])
  end
  return replies
end
"""
)
_HEAD: Final = LUA_CLOCK + _ERASURES
_GATED: Final = GATE + _ERASURES

BEGIN: Final = (
    _HEAD
    + """
-- ARGV: claims, keep ms. Returns 'ok <mark>', 'stale <newest token>' or 'erased'
return each_claim(function(claim, fence, erasures)
  local newest = stale(fence, claim.token, ARGV[2])
  if newest ~= '' then return 'stale ' .. newest end
  local mark = mark_of(erasures, claim.scopes)
  return mark and not is_older(erasures, claim) and 'ok ' .. mark or 'erased'
end)
"""
)

OPEN: Final = (
    _GATED
    + """
-- ARGV: claims, keep ms, the write's name, ms that its points may take, generation, note
local there, entered = is_open(ARGV[5]), false
return each_claim(function(claim, fence, erasures, writing)
  if not there then return 'moved' end
  local newest = stale(fence, claim.token, ARGV[2])
  if newest ~= '' then return 'stale ' .. newest end
  if mark_of(erasures, claim.scopes) ~= claim.mark then return 'erased' end
  if not entered then enter(ARGV[3], ARGV[6], ARGV[4]) end
  entered = true
  redis.call('ZADD', writing, now_ms() + ARGV[4], ARGV[3])
  redis.call('PEXPIRE', writing, 2 * ARGV[4])
  return 'ok'
end)
"""
)

CLOSE: Final = (
    _GATED
    + """
-- ARGV: claims, the write's name, generation. A write that is listed no more took too long: an erasure or a copy may
-- not have waited for it
local counts = leave(ARGV[2], ARGV[3])
return each_claim(function(claim, fence, erasures, writing)
  local listed = redis.call('ZREM', writing, ARGV[2]) == 1
  if not listed and mark_of(erasures, claim.scopes) ~= claim.mark then return 'erased' end
  return counts and 'ok' or 'late'
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
    _GATED
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
    _GATED
    + """
-- KEYS: erasures; ARGV: scope, mark, generation, the erasure's name. Returns 1, or 0 if the deletion may not be whole:
-- the lease ran out, another erasure of the same scope began, or a copy did not wait for it
local counts = leave(ARGV[4], ARGV[3])
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
local held = underway(KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[1], 'until ' .. ARGV[1])
return held and counts and 1 or 0
"""
)
