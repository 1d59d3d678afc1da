"""The bytes that unfinished jobs hold: of its tenant's quota, from a job's queueing to its end."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from memloop_state.link import State, redis_errors
from memloop_state.partitions import Partitions
from memloop_state.scripts import text


@dataclass(frozen=True, slots=True)
class QueuedBytes:
    """The bytes that the unfinished jobs of all queues hold: of all tenants, and of the one with the most."""

    total: int
    largest_tenant: int


async def queued_bytes(redis: State) -> QueuedBytes:
    """Add up the bytes of every tenant. Raises Unavailable."""
    tenants: Counter[str] = Counter()
    for partition in Partitions(redis).partitions:
        with redis_errors():
            found: Mapping[object, object] = await cast(Any, redis).hgetall(partition.key("queued-bytes"))
        tenants.update({text(tenant): int(text(size)) for tenant, size in found.items()})
    return QueuedBytes(tenants.total(), max(tenants.values(), default=0))
