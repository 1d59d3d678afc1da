"""A webhook delivery as a queued job, and the handler that sends it.

Its id derives from the read's, so a read that ends twice after a crash queues one delivery, and a receiver can
recognise duplicates. The body is built once: every attempt sends the same bytes.
"""

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Literal

import aiohttp

from gateway.addresses import AddressRefused, Lookup, checked_session, system_lookup
from gateway.metrics import Metrics
from gateway.queue import Hold, JobGone, JobRecords, JobResult, Lease, Submission
from gateway.webhooks.webhooks import WebhookRules
from memloop.wire.base import Wire
from memloop.wire.changes import Change, ChangeType, MemoryChange
from memloop.wire.errors import MemloopError, Unavailable
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


class Hook(Wire):
    """A subscription: the changes of these types, of one user or of all, go to ``url``."""

    id: str
    tenant: str
    url: str
    events: tuple[ChangeType, ...]
    user_id: str | None = None
    created_at: datetime

    def wants(self, change: Change) -> bool:
        """Return whether the change is subscribed to."""
        return change.type in self.events and self.user_id in (None, change.user_id)


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
    return at.key("webhooks", tenant)


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


def change_delivery(change: MemoryChange, *, hook: Hook, at: Partitions) -> Submission:
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


_LOG = logging.getLogger(__name__)
_GONE = 410


class NotDelivered(MemloopError):
    """The receiver did not accept the message: the attempt counts."""


class DeliveryHandler:
    """Delivers webhooks. Only the response's status counts: bodies are not read and redirects not followed."""

    def __init__(
        self, state: State, rules: WebhookRules, metrics: Metrics, *, timeout_s: float, lookup: Lookup = system_lookup
    ) -> None:
        self._jobs = JobRecords(state)
        self._hooks = memory_hooks(state)
        self._rules = rules
        self._metrics = metrics
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._lookup = lookup

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Make one attempt. Raises NotDelivered, and Unavailable while this worker has no secret."""
        del hold
        delivery = await self._jobs.leased(lease, Delivery)
        if delivery.hook_id is not None and await self._hooks.get(delivery.tenant, delivery.hook_id) is None:
            self._count("gone")
            return JobResult("gone", "")
        if self._rules.secrets is None:
            raise Unavailable("This worker has no MEMLOOP_WEBHOOK_SECRET.")
        at = datetime.now(UTC)
        signatures = self._rules.secrets.signatures(delivery.tenant, message_id=delivery.id, at=at, body=delivery.body)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "memloop",
            "webhook-id": delivery.id,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": signatures,
        }
        try:
            async with (
                checked_session(self._rules.addresses, self._lookup, timeout=self._timeout) as session,
                session.post(delivery.url, data=delivery.body, headers=headers, allow_redirects=False) as response,
            ):
                status = response.status
        except (aiohttp.ClientError, OSError, ValueError) as error:
            refused = isinstance(getattr(error, "os_error", error), AddressRefused)
            self._count("refused" if refused else "failed")
            problem = "its address is not public" if refused else type(error).__name__
            raise NotDelivered(f"The receiver could not be reached: {problem}.") from error
        if status != _GONE and not 200 <= status < 300:
            self._count("failed")
            raise NotDelivered(f"The receiver answered {status}.")
        outcome = "gone" if status == _GONE else "delivered"
        self._count(outcome)
        return JobResult(outcome, "")

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Count and log the dead letter. The client can still fetch its read."""
        self._count("dead")
        _LOG.warning("webhook %s: gave up after %d attempts: %s", lease.job_id, attempts, error.message)
        return JobResult("failed", "")

    async def cancelled(self, lease: Lease) -> JobResult:
        """Raise JobGone: a delivery cannot be cancelled; deleting its read deletes it."""
        raise JobGone(lease.job_id)

    def _count(self, outcome: str) -> None:
        self._metrics.longread_webhooks.labels(outcome).inc()
