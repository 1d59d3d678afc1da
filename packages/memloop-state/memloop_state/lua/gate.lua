-- The gate between writes and a change of the collection in service (docs/decisions/0053-stores-agree-in-redis.md).
--
-- Every partition has a gate: the hash gate with the generation in service (gen), the copy that is under way (copy),
-- whether that copy keeps writes out (closed) and the time (ms) from which erasures may begin again after a swap
-- (settles). passages is the sorted set of writes and erasures that change the collection now, by the time at which
-- each counts as dead. During a copy, pending holds the note of each of them, and changed the notes of those that are
-- over. The set unsettled has every user with a write that is not over, as JSON. The first text of every step, which is
-- taken out, names the place of the collections.
local site = table.remove(ARGV, 2)
local gate, passages, pending = key('gate', site), key('passages', site), key('pending', site)
local changed, users = key('changed', site), key('unsettled', site)
local function is_open(gen)
  local here = redis.call('HMGET', gate, 'gen', 'closed')
  return here[1] == gen and not here[2]
end
local function enter(name, note, ms)
  redis.call('ZADD', passages, now_ms() + ms, name)
  if redis.call('HEXISTS', gate, 'copy') == 1 then redis.call('HSET', pending, name, note) end
end
-- Whether the change counts: a copy may not have waited for one that took too long. And whether it was noted
local function leave(name, gen)
  local note = redis.call('HGET', pending, name)
  if note then
    redis.call('HDEL', pending, name)
    redis.call('RPUSH', changed, note)
  end
  if redis.call('ZREM', passages, name) == 1 then return true, note ~= false end
  return is_open(gen) and redis.call('HEXISTS', gate, 'copy') == 0, false
end
local function inside()
  redis.call('ZREMRANGEBYSCORE', passages, '-inf', now_ms())
  return redis.call('ZCARD', passages)
end

-- ARGV: generation, note. Notes a change that is over once more. Returns 0 where another generation is in service, and
-- while the gate is shut: the copy may have taken its last note
function steps.note_again()
  if not is_open(ARGV[1]) then return 0 end
  if redis.call('HEXISTS', gate, 'copy') == 1 then redis.call('RPUSH', changed, ARGV[2]) end
  return 1
end

-- ARGV: generation, the copy that has ended or '', ms until erasures may begin. A later generation stays
function steps.align()
  local here = redis.call('HMGET', gate, 'gen', 'copy')
  local earlier = not here[1] or tonumber(here[1]) < tonumber(ARGV[1])
  if earlier or (ARGV[2] ~= '' and here[2] == ARGV[2]) then
    redis.call('DEL', gate, pending, changed)
    redis.call('HSET', gate, 'gen', ARGV[1], 'settles', now_ms() + ARGV[3])
  end
end

-- ARGV: copy, generation. Begins to note changes; returns the names of those that are under way, false for another gate
function steps.note()
  local here = redis.call('HMGET', gate, 'gen', 'copy')
  if here[1] ~= ARGV[2] or here[2] then return false end
  redis.call('HSET', gate, 'copy', ARGV[1])
  redis.call('DEL', pending, changed)
  inside()
  return redis.call('ZRANGE', passages, 0, -1)
end

-- ARGV: names. How many of them are still under way
function steps.remaining()
  inside()
  local count = 0
  for _, name in ipairs(ARGV) do
    if redis.call('ZSCORE', passages, name) then count = count + 1 end
  end
  return count
end

-- ARGV: how many. Notes of changes that are over, the oldest first; they are taken out
function steps.take()
  return redis.call('LPOP', changed, ARGV[1]) or {}
end

-- ARGV: copy, 1 to close or '' to open. Returns 0 if the copy is not the one under way
function steps.shut()
  if redis.call('HGET', gate, 'copy') ~= ARGV[1] then return 0 end
  if ARGV[2] == '1' then redis.call('HSET', gate, 'closed', 1) else redis.call('HDEL', gate, 'closed') end
  return 1
end

-- ARGV: copy. How many changes are under way, false if the gate is not shut for the copy. If none is, the notes of
-- those that died are over too
function steps.under_way()
  local here = redis.call('HMGET', gate, 'copy', 'closed')
  if here[1] ~= ARGV[1] or not here[2] then return false end
  local count = inside()
  if count > 0 then return count end
  for _, note in ipairs(redis.call('HVALS', pending)) do redis.call('RPUSH', changed, note) end
  redis.call('DEL', pending)
  return 0
end
