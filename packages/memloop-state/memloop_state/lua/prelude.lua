-- What every program begins with: its steps, and Redis's clock
local steps = {}
local function now_us()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
local function now_ms() return math.floor(now_us() / 1000) end
local function whole(number) return string.format('%.0f', number) end
-- Names a key of the partition whose root is the first of the KEYS (memloop_state.steps.Partition)
local function key(...) return table.concat({KEYS[1], ...}, ':') end
