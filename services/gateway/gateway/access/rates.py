"""Limits requests and tokens per minute and key with a sliding window in Redis that all replicas share.

The window is a hash of counts per second with at most 61 fields of each kind. A count expires 60 to 61 seconds after it
was made, never early. Tokens are estimated on admission and corrected once the usage is known. A request that alone
exceeds the token limit is admitted when the window is empty.
"""

from dataclasses import dataclass
from typing import Final

from redis.asyncio import Redis

from gateway.access.key_names import rate_window
from memloop_state.scripts import Script

_KEEP_S: Final = 61

_ADMIT = """
-- KEYS[1] window; ARGV: limit of requests, limit of tokens (0 = none), estimated tokens, seconds to keep
local now, keep = tonumber(redis.call('TIME')[1]), tonumber(ARGV[4])
local used, slots = {r = 0, t = 0}, {r = {}, t = {}}
local counts = redis.call('HGETALL', KEYS[1])
for i = 1, #counts, 2 do
  local kind, second = string.sub(counts[i], 1, 1), tonumber(string.sub(counts[i], 2))
  if second <= now - keep then
    redis.call('HDEL', KEYS[1], counts[i])
  else
    used[kind] = used[kind] + tonumber(counts[i + 1])
    table.insert(slots[kind], {second, tonumber(counts[i + 1])})
  end
end
for _, found in pairs(slots) do table.sort(found, function(a, b) return a[1] < b[1] end) end
local function wait(kind, limit, asked)
  local over = used[kind] + asked - limit
  if limit == 0 or over <= 0 then return 0 end
  for _, slot in ipairs(slots[kind]) do
    over = over - slot[2]
    if over <= 0 then return slot[1] + keep - now end
  end
  return keep
end
local function reset(kind)
  local newest = slots[kind][#slots[kind]]
  return newest and newest[1] + keep - now or 0
end
local requests, tokens, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if tokens > 0 then asked = math.min(asked, tokens) end
local wait_requests, wait_tokens = wait('r', requests, 1), wait('t', tokens, asked)
if wait_requests > 0 or wait_tokens > 0 then
  return {wait_requests, wait_tokens, used.r, used.t, reset('r'), reset('t'), now, 0}
end
redis.call('HINCRBY', KEYS[1], 'r' .. now, 1)
if asked > 0 then redis.call('HINCRBY', KEYS[1], 't' .. now, asked) end
redis.call('EXPIRE', KEYS[1], keep)
return {0, 0, used.r + 1, used.t + asked, keep, asked > 0 and keep or reset('t'), now, asked}
"""

_SETTLE = """
-- KEYS[1] window; ARGV: the second of admission, correction of the tokens counted then (+ or -), seconds to keep
local field, more = 't' .. ARGV[1], tonumber(ARGV[2])
if more > 0 then field = 't' .. redis.call('TIME')[1] end
if more < 0 and redis.call('HEXISTS', KEYS[1], field) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], field, more)
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits per minute and key; 0 means unlimited."""

    requests: int = 0
    tokens: int = 0

    @property
    def any(self) -> bool:
        """Whether any limit is set."""
        return self.requests > 0 or self.tokens > 0


@dataclass(frozen=True, slots=True)
class Standing:
    """A key's usage after a request. A ``wait_*_s`` above 0 rejects it: the seconds until it would be admitted."""

    wait_requests_s: int
    wait_tokens_s: int
    used_requests: int
    used_tokens: int
    reset_requests_s: int
    reset_tokens_s: int
    second: int
    """When the request was admitted, by Redis's clock."""
    charged: int
    """The tokens counted until the request is settled."""

    @property
    def wait_s(self) -> int:
        """Seconds until the request would be admitted."""
        return max(self.wait_requests_s, self.wait_tokens_s)

    def headers(self, limits: RateLimits) -> dict[str, str]:
        """Return OpenAI's ``x-ratelimit-*`` headers for the limits that are set."""
        rows = (
            ("requests", limits.requests, self.used_requests, self.reset_requests_s),
            ("tokens", limits.tokens, self.used_tokens, self.reset_tokens_s),
        )
        found: dict[str, str] = {}
        for kind, limit, used, reset_s in rows:
            if limit > 0:
                found[f"x-ratelimit-limit-{kind}"] = str(limit)
                found[f"x-ratelimit-remaining-{kind}"] = str(max(0, limit - used))
                found[f"x-ratelimit-reset-{kind}"] = f"{reset_s}s"
        return found


class Rates:
    """Keeps the windows in Redis. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis, limits: RateLimits) -> None:
        self.limits = limits
        self._admit = Script(redis, _ADMIT)
        self._settle = Script(redis, _SETTLE)

    async def admit(self, bucket: str, *, tokens: int) -> Standing:
        """Count one request and its tokens; a request over a limit is rejected and not counted."""
        args = [self.limits.requests, self.limits.tokens, tokens, _KEEP_S]
        return Standing(*map(int, await self._admit.rows([rate_window(bucket)], args)))

    async def settle(self, bucket: str, standing: Standing, *, spent: int) -> None:
        """Correct the token count that was made on admission."""
        more = spent - standing.charged
        if more:
            await self._settle.number([rate_window(bucket)], [standing.second, more, _KEEP_S])
