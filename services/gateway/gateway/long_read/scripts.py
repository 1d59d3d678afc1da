"""The atomic steps of long reads, in Lua: keys from the caller, only commands of Redis 6.2."""

from gateway.queue import LIST_IN
from memloop_state.owners import OWNERS

PUBLISH = (
    OWNERS
    + """
-- KEYS: job, events; ARGV: entry id, event, record, expire events and job after ms (0 = leave)
if redis.call('EXISTS', KEYS[1]) == 0 then return 'gone' end
local added = redis.pcall('XADD', KEYS[2], ARGV[1], 'event', ARGV[2])
local failed = type(added) == 'table' and added.err
if failed and not string.find(failed, 'equal or smaller') then return redis.error_reply(failed) end
if not failed then redis.call('HSET', KEYS[1], 'record', ARGV[3]) end
if ARGV[4] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  end_with_records(KEYS[1])
end
if redis.call('HEXISTS', KEYS[1], 'cancel') == 1 then return 'cancel' end
return 'added'
"""
)

STATUSES = """
-- KEYS: jobs; each one's status, nil when it is gone
local statuses = {}
for number, job in ipairs(KEYS) do statuses[number] = redis.call('HGET', job, 'status') end
return statuses
"""

OPEN_READ = (
    LIST_IN
    + OWNERS
    + """
-- KEYS: job, index, those of its owners; ARGV: id, now, tenant, status, record, expire ms, its owners. Returns 0 if one
-- of them was erased since the work began
if is_erased(3, owners_at(ARGV, 7)) then return 0 end
redis.call('HSET', KEYS[1], 'tenant', ARGV[3], 'status', ARGV[4], 'record', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
list_in(KEYS[2], KEYS[1], ARGV[1], ARGV[2])
own(3, owners_at(ARGV, 7), KEYS[1])
end_with_records(KEYS[1])
return 1
"""
)
