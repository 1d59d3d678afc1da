"""A webhook delivery as a queued job.

Its id derives from the read's, so a read that ends twice after a crash queues one delivery, and a receiver can
recognise duplicates. The body is built once: every attempt sends the same bytes.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

from gateway.queue import Submission
from memloop.wire.base import Wire
from memloop.wire.changes import MemoryChange
from memloop.wire.long_read import LongRead, ReadStatus
from memloop_state.link import State
from memloop_state.owners import Owner
from memloop_state.steps import Partition, Partitions, id_beside
from memloop_state.table import Table

_PREFIX: Final = "msg_"
MOST_HOOKS: Final = 20


class MessageData(Wire):
    """The read that ended; the client fetches the result itself."""

    id: str
    object: Literal["long_read"] = "long_read"
    status: ReadStatus


class ChangeData(Wire):
    """The memory that changed, or whose were erased; ``change_id`` is the change's cursor in the feed."""

    id: str | None = None
    object: Literal["memory"] = "memory"
    change_id: str
    reason: str
    version: int | None = None
    supersedes: str | None = None
    user_id: str
    agent_id: str | None = None
    run_id: str | None = None


class Message(Wire):
    """The body of a webhook."""

    type: str
    timestamp: datetime
    data: MessageData | ChangeData


class Delivered(Protocol):
    """A subscription, as far as its deliveries name it."""

    @property
    def id(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def url(self) -> str: ...


class Delivery(Wire):
    """One message to one address. ``hook_id`` is the subscription's that it belongs to."""

    id: str
    tenant: str
    url: str
    body: str
    hook_id: str | None = None


def delivery_id(read_id: str) -> str:
    """Return the id of the message about a read's end."""
    return id_beside(_PREFIX, read_id, hashlib.sha256(read_id.encode()).hexdigest()[:32])


def index_of(tenant: str, *, at: Partition) -> str:
    """Name the sorted set of the tenant's deliveries in this partition, by time."""
    return at.listed("webhooks", tenant)


def memory_hooks(state: State) -> Table:
    """Return the table of the subscriptions to changes, of which a delivery may be."""
    return Table(state, "memory-webhook", kind="memory-webhooks", most=MOST_HOOKS, tenants=True)


def delivery_of(record: LongRead, *, tenant: str, url: str, at: Partition, owners: Sequence[Owner] = ()) -> Submission:
    """Return the job that notifies ``url`` of the read's end; ``at`` is the read's partition, ``owners`` the read's."""
    message = Message(
        type=f"long_read.{record.status}",
        timestamp=datetime.fromtimestamp(record.completed_at or time.time(), UTC),
        data=MessageData(id=record.id, status=record.status),
    )
    delivery = Delivery(id=delivery_id(record.id), tenant=tenant, url=url, body=message.model_dump_json())
    return replace(_submission(delivery, index=index_of(tenant, at=at)), owners=owners)


def change_delivery(change: MemoryChange, *, hook: Delivered, at: Partitions) -> Submission:
    """Return the job that sends a change to a subscription; repeated for the same change it is the same job."""
    about = ("reason", "version", "supersedes", "user_id", "agent_id", "run_id")
    data = ChangeData(id=change.memory_id, change_id=change.id, **change.model_dump(include=set(about)))
    message = Message(type=change.type, timestamp=change.at, data=data)
    digits = hashlib.sha256(f"{hook.id} {change.id}".encode()).hexdigest()[:32]
    delivery = Delivery(
        id=id_beside(_PREFIX, hook.id, digits),
        tenant=hook.tenant,
        url=hook.url,
        body=message.model_dump_json(exclude_none=True),
        hook_id=hook.id,
    )
    return _submission(delivery, index=index_of(hook.tenant, at=at.of_id(delivery.id)))


def _submission(delivery: Delivery, *, index: str) -> Submission:
    return Submission(
        job_id=delivery.id,
        lane=delivery.id,
        created_ms=int(time.time() * 1000),
        index=index,
        fields={"tenant": delivery.tenant, "status": "queued", "payload": delivery.model_dump_json()},
    )
