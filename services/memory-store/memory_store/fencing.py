"""Fencing tokens: a writer that lost its lane's lock must not write any more."""

from memloop.wire.errors import Conflict
from memory_store.redis_link import RedisLink, digest, translated

_KEEP_MS = 7 * 24 * 3600 * 1000
_ADMIT = """
local newest = tonumber(redis.call('GET', KEYS[1]) or '-1')
local token = tonumber(ARGV[1])
if token < newest then return newest end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return -1
"""


class Fence:
    """Remembers each lane's newest token in Redis, for a week after its last use.

    The check and the write that follows are one step inside one process, which serialises a lane. Between two store
    processes a stale write can still slip in between; deterministic ids and the resolution of the next write mend it.
    """

    def __init__(self, link: RedisLink) -> None:
        self._admit = link.register_script(_ADMIT)

    async def admit(self, lane: str, token: int) -> None:
        """Take note of the token. Raises ``Conflict`` (code ``stale_fencing_token``) if a newer one was seen."""
        with translated():
            newest = int(await self._admit(keys=[f"memloop:fence:{digest(lane)}"], args=[token, _KEEP_MS]))
        if newest >= 0:
            raise Conflict(
                f"fencing token {token} is older than {newest}: another writer holds this lane now",
                code="stale_fencing_token",
            )
