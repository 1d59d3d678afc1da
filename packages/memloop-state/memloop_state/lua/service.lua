-- The record of the collection in service and of the copy that will replace it.
--
-- KEYS: service, a hash, and stores, a hash of the processes that are alive: a name, then 'until generation prepared'.
-- The fields of service: gen, name, model, dimension of the collection, job (the newest, as JSON), and of a copy copy
-- (its id), target, target_model, target_dimension, until (its lease, ms) and, once its end is certain, decided: done or
-- abandoned.
local function get(field)
  return redis.call('HGET', KEYS[1], field)
end
local function put(...)
  redis.call('HSET', KEYS[1], ...)
end
-- A generation is a time in microseconds, later than all before
local function next_gen()
  return string.format('%.0f', math.max(now_us(), tonumber(get('gen') or 0) + 1))
end
local function lapsed()
  return tonumber(get('until') or 0) <= now_ms()
end

-- ARGV: store or '', generation, prepared copy, lease ms. Renews the store's lease.
-- Returns the record, whether the lease of its copy is over, and the stores alive
function steps.look()
  if ARGV[1] ~= '' then
    redis.call('HSET', KEYS[2], ARGV[1], (now_ms() + ARGV[4]) .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
  end
  local alive = {}
  local stores = redis.call('HGETALL', KEYS[2])
  for i = 1, #stores, 2 do
    if tonumber(string.match(stores[i + 1], '^%d+')) > now_ms() then
      alive[#alive + 1] = stores[i]
      alive[#alive + 1] = stores[i + 1]
    else
      redis.call('HDEL', KEYS[2], stores[i])
    end
  end
  return {redis.call('HGETALL', KEYS[1]), lapsed() and 1 or 0, alive}
end

-- ARGV: store
function steps.leave()
  redis.call('HDEL', KEYS[2], ARGV[1])
end

-- ARGV: the generation that is expected, or '', name, model, dimension. Puts a collection in service without a copy
function steps.put()
  if (get('gen') or '') ~= ARGV[1] then return end
  local gen, job = next_gen(), get('job')
  redis.call('DEL', KEYS[1])
  put('gen', gen, 'name', ARGV[2], 'model', ARGV[3], 'dimension', ARGV[4])
  if job then put('job', job) end
end

-- ARGV: generation, copy, target, its model, its dimension, lease ms, job. Returns 0 while another copy is under way
function steps.claim()
  if get('gen') ~= ARGV[1] or get('copy') then return 0 end
  put('copy', ARGV[2], 'target', ARGV[3], 'target_model', ARGV[4], 'target_dimension', ARGV[5],
    'until', now_ms() + ARGV[6], 'job', ARGV[7])
  return 1
end

-- ARGV: copy, lease ms, job. Returns 0 when it was abandoned
function steps.renew()
  if get('copy') ~= ARGV[1] or get('decided') == 'abandoned' then return 0 end
  put('until', now_ms() + ARGV[2], 'job', ARGV[3])
  return 1
end

-- ARGV: copy. Puts its target in service
function steps.decide()
  if get('copy') ~= ARGV[1] or get('decided') then return 0 end
  put('gen', next_gen(), 'name', get('target'), 'model', get('target_model'), 'dimension', get('target_dimension'),
    'decided', 'done')
  return 1
end

-- ARGV: copy, 1 from the store that runs it. Ends a copy that failed, or whose lease is over
function steps.abandon()
  if get('copy') ~= ARGV[1] or get('decided') then return end
  if ARGV[2] == '1' or lapsed() then put('decided', 'abandoned') end
end

-- ARGV: copy, job or ''. Forgets a copy whose end is decided and everywhere in force
function steps.clear()
  if get('copy') ~= ARGV[1] or not get('decided') then return end
  redis.call('HDEL', KEYS[1], 'copy', 'target', 'target_model', 'target_dimension', 'until', 'decided')
  if ARGV[2] ~= '' then put('job', ARGV[2]) end
end
