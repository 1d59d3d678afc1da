-- Orders writes and erasures, and settles writes that may be on some copies only (memloop_state.store.erasures).
--
-- Each of a write's three steps takes any number of claims of one partition: ARGV[1] is a JSON list of them, {"token":
-- "7" or "", "began": "7" or "", "mark": "…", "scopes": ["…", …], "user": "…", "lane": "…"}, the lane by its digest. The
-- reply is one text for each claim, whose first word is ok, stale, erased, moved, late, noted, unsettled or settling.
--
-- The hash notes has the points of each write of the user that is not over, by the write's name, as JSON, after a ! if
-- it was refused and a ~ if it was settled then; its field settling is the time (ms) until which one store settles
-- alone, and the name of that settling.
--
-- The hash erasures has up to two fields for every erased scope: its mark, a text that every erasure changes when it
-- begins, and, while one is under way, the time (ms) at which it counts as dead (until …). The tokens of erasures are
-- the marks of owners.lua.
local function stale(fence, token)
  if token == '' then return '' end
  local newest = redis.call('GET', fence)
  if newest and tonumber(token) < tonumber(newest) then return newest end
  redis.call('SET', fence, token, 'PX', KEEP_MS)
  return ''
end
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
local function each_claim(step)
  local replies = {}
  for i, claim in ipairs(cjson.decode(ARGV[1])) do
    local lane = claim.lane
    replies[i] = step(claim, key('lane-fence', lane), key('erasures', lane), key('writing', lane),
      key('unsettled-writes', lane))
  end
  return replies
end
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

-- ARGV: claims. Returns 'ok <mark>', 'stale <newest token>', 'erased', or 'unsettled' where an earlier write
-- of the user may be on some copies only
function steps.begin()
  return each_claim(function(claim, fence, erasures, writing, notes)
    local newest = stale(fence, claim.token)
    if newest ~= '' then return 'stale ' .. newest end
    local mark = mark_of(erasures, claim.scopes)
    if not mark or claim.began ~= '' and newest_mark(claim) > tonumber(claim.began) then return 'erased' end
    local counts = states_of(writing, notes)
    return counts.refused + counts.dead > 0 and 'unsettled' or 'ok ' .. mark
  end)
end

-- ARGV: claims, the write's name, ms that its points may take, generation, note, 1 if points have copies
function steps.open()
  local there, entered = is_open(ARGV[4]), false
  return each_claim(function(claim, fence, erasures, writing, notes)
    if not there then return 'moved' end
    if until_of(notes) > now_ms() then return 'settling' end
    local newest = stale(fence, claim.token)
    if newest ~= '' then return 'stale ' .. newest end
    if mark_of(erasures, claim.scopes) ~= claim.mark then return 'erased' end
    if not entered then enter(ARGV[2], ARGV[5], ARGV[3]) end
    entered = true
    redis.call('ZADD', writing, now_ms() + ARGV[3], ARGV[2])
    redis.call('PEXPIRE', writing, 2 * ARGV[3])
    if ARGV[6] == '1' then
      redis.call('HSET', notes, ARGV[2], ARGV[5])
      redis.call('SADD', users, claim.user)
    end
    return 'ok'
  end)
end

-- ARGV: claims, the write's name, generation. A write that is listed no more took too long: an erasure or a copy may
-- not have waited for it
function steps.close()
  local counts, noted = leave(ARGV[2], ARGV[3])
  return each_claim(function(claim, fence, erasures, writing, notes)
    local listed = redis.call('ZREM', writing, ARGV[2]) == 1
    redis.call('HDEL', notes, ARGV[2])
    forget_user(notes, claim.user)
    if not listed and mark_of(erasures, claim.scopes) ~= claim.mark then return 'erased' end
    if not counts then return 'late' end
    return noted and 'noted' or 'ok'
  end)
end

-- ARGV: lane, token or '', scope, lease ms. Returns {newest token or '', mark}
function steps.start()
  local erasures, newest = key('erasures', ARGV[1]), stale(key('lane-fence', ARGV[1]), ARGV[2])
  if newest ~= '' then return {newest, ''} end
  local mark = whole(now_us())
  redis.call('HSET', erasures, ARGV[3], mark, 'until ' .. ARGV[3], now_ms() + ARGV[4])
  redis.call('PEXPIRE', erasures, KEEP_MS)
  if ARGV[2] ~= '' then mark_erased(key('erased', ARGV[1]), ARGV[3], ARGV[2]) end
  return {'', mark}
end

-- ARGV: lane, generation, the erasure's name, note, lease ms. Returns 'moved', or 'wait' while writes of the lane are on
-- their way (those whose time is over count no more) or stores may still answer from another collection
function steps.enter()
  local writing = key('writing', ARGV[1])
  if not is_open(ARGV[2]) then return 'moved' end
  redis.call('ZREMRANGEBYSCORE', writing, '-inf', now_ms())
  if redis.call('ZCARD', writing) > 0 then return 'wait' end
  if tonumber(redis.call('HGET', gate, 'settles') or 0) > now_ms() then return 'wait' end
  enter(ARGV[3], ARGV[4], ARGV[5])
  return 'ok'
end

-- ARGV: lane, scope, mark, generation, the erasure's name. Returns 1, 2 if a copy has a note of it, or 0 if the deletion
-- may not be whole: the lease ran out, another erasure of the same scope began, or a copy did not wait
function steps.finish()
  local erasures, counts, noted = key('erasures', ARGV[1]), leave(ARGV[5], ARGV[4])
  if redis.call('HGET', erasures, ARGV[2]) ~= ARGV[3] then return 0 end
  local held = underway(erasures, ARGV[2])
  redis.call('HDEL', erasures, 'until ' .. ARGV[2])
  if not (held and counts) then return 0 end
  return noted and 2 or 1
end

-- ARGV: claims, the write's name. Marks it as refused; it stays listed, since Qdrant may still carry it out
function steps.refuse()
  return each_claim(function(claim, fence, erasures, writing, notes)
    local note = redis.call('HGET', notes, ARGV[2])
    if note and note:sub(1, 1) ~= '!' then redis.call('HSET', notes, ARGV[2], '!' .. note) end
    return 'ok'
  end)
end

-- ARGV: one claim, the settling's name, ms that it may take, generation. Returns 'moved', 'none', 'ok <names and
-- notes>', or 'wait' while the user is erased, or has a write that is on its way or a settling
function steps.settle()
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
end

-- ARGV: one claim, the settling's name, generation, the names of the writes that are settled as JSON, or '' for a
-- settling that has failed: it stays listed, since Qdrant may still carry it out. A write that is still listed keeps
-- its note for the same reason
function steps.settled()
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
end

-- ARGV: how many. Users with writes that are not over, by chance
function steps.some() return redis.call('SRANDMEMBER', users, ARGV[1]) end

-- KEYS: user's buffers, users, by time, fence; ARGV: user, token, time, then fields and their buffers ('' = none)
function steps.set_buffers()
  local newest = stale(KEYS[4], ARGV[2])
  if newest ~= '' then return newest end
  for i = 4, #ARGV, 2 do
    local field, buffer, place = ARGV[i], ARGV[i + 1], KEYS[1] .. '/' .. ARGV[i]
    if buffer == '' then
      redis.call('HDEL', KEYS[1], field)
      redis.call('ZREM', KEYS[3], place)
    else
      redis.call('HSET', KEYS[1], field, buffer)
      redis.call('ZADD', KEYS[3], ARGV[3], place)
    end
  end
  redis.call(redis.call('EXISTS', KEYS[1]) == 1 and 'SADD' or 'SREM', KEYS[2], ARGV[1])
  return ''
end
