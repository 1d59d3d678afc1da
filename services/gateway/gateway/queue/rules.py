"""The operator's rules for queues: how many jobs a tenant gives in turn, and how many bytes of them may wait."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client import Counter
from redis.asyncio import Redis

from gateway.settings import GatewaySettings, weights_of
from memloop.wire.errors import RateLimited, Unavailable
from memloop_state.room import RedisRoom


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The rules for the jobs of clients. Without ``room`` all are admitted; ``refused`` counts by queue and reason."""

    weights: Mapping[str, int] = field(default_factory=dict[str, int])
    room: RedisRoom | None = None
    refused: Counter | None = None

    async def quota_bytes(self) -> int:
        """Return the bytes of jobs that one tenant may have queued in a partition; 0 is no limit.

        Raises Unavailable while Redis is nearly full.
        """
        return 0 if self.room is None else await self.room.check()

    @contextmanager
    def counted(self, queue: str) -> Generator[None]:
        """Count a job that is refused: the tenant is over its quota, or Redis is nearly full or unreachable."""
        try:
            yield
        except (RateLimited, Unavailable) as error:
            if self.refused is not None:
                self.refused.labels(queue, "quota" if isinstance(error, RateLimited) else "unavailable").inc()
            raise


def queue_rules(settings: GatewaySettings, redis: Redis, *, refused: Counter) -> QueueRules:
    """Build the rules from the settings."""
    room = RedisRoom(redis, share=settings.redis_full_share, tenant_share=settings.tenant_queue_share)
    return QueueRules(weights_of(settings.tenant_weights), room, refused)
