"""Reads which lanes of one tenant have jobs, without a look at the jobs of another."""

from typing import Final

MOST_LANES: Final = 500
"""Lanes in one reply that wait for a worker. The others have a worker or failed a moment ago, and are few."""

READ: Final = """
-- KEYS: a tier's stream, delayed set and ready set. ARGV: tenant, how the names of its lanes begin, the last entry that
-- was read ('' = none), most entries
-- Returns the last entry of a page with more behind it, else '', then the lanes. The last page has the lanes beside
-- those that wait for a worker. A lane that begins to wait again goes to the end, so no lane escapes between two pages
local tenant, prefix, last, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local from = last == '' and '[' .. tenant .. ':' or '(' .. last
local entries = redis.call('ZRANGEBYLEX', KEYS[3], from, '(' .. tenant .. ';', 'LIMIT', 0, most)
local found = {#entries == most and entries[most] or ''}
local function add(lane)
  if string.sub(lane, 1, #prefix) == prefix then found[#found + 1] = lane end
end
for _, entry in ipairs(entries) do add(string.match(string.sub(entry, #tenant + 2), '^%d+:%S* (.*)$')) end
if found[1] ~= '' then return found end
for _, lane in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do add(lane) end
for _, ticket in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
  for i = 1, #ticket[2], 2 do
    if ticket[2][i] == 'lane' then add(ticket[2][i + 1]) end
  end
end
return found
"""
