"""Fencing tokens: a writer that lost its lane's lock must not write any more."""

from memloop.wire.errors import Conflict
from memloop_service.redis_link import LuaScript, redis_errors
from memory_store.redis.key_names import KeyNames
from memory_store.redis.link import RedisLink

KEEP_MS = 7 * 24 * 3600 * 1000
"""A lane's newest token is known for so long after its last use."""
STALE = """
local function stale(fence, token, keep_ms)
  if token == '' then return '' end
  local newest = redis.call('GET', fence)
  if newest and tonumber(token) < tonumber(newest) then return newest end
  redis.call('SET', fence, token, 'PX', keep_ms)
  return ''
end
"""
"""For scripts that check and write in one step: the newer token, or ''. A write without a token is not checked."""
_ADMIT = STALE + "return stale(KEYS[1], ARGV[1], ARGV[2])"


class Fence:
    """Remembers each lane's newest token in Redis.

    The check and the write that follows are one step inside one process, which serialises a lane. Vectors lie in
    another system than tokens: between two store processes a stale write can still slip in between the last check and
    the upsert that follows at once; deterministic ids and the resolution of the next write mend it.
    """

    def __init__(self, link: RedisLink) -> None:
        self._keys = KeyNames(link)
        self._admit = LuaScript(link, _ADMIT)

    async def admit(self, lane: str, token: int) -> None:
        """Take note of the token. Raises ``Conflict`` (code ``stale_fencing_token``) if a newer one was seen."""
        with redis_errors():
            newest = str(await self._admit(keys=[self._keys.of_lane(lane).fence(lane)], args=[token, KEEP_MS]))
        refuse_stale(token, newest)


def refuse_stale(token: int | None, newest: str) -> None:
    """Raise ``Conflict`` if the script found a newer token."""
    if newest:
        raise Conflict(
            f"fencing token {token} is older than {newest}: another writer holds this lane now",
            code="stale_fencing_token",
        )
