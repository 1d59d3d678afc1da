"""A webhook delivery as a queued job.

Its id derives from the read's, so a read that ends twice after a crash queues one delivery, and a receiver can
recognise duplicates. The body is built once: every attempt sends the same bytes.
"""

import hashlib
import time
from datetime import UTC, datetime
from typing import Literal

from gateway.queue import Submission
from gateway.redis import key_names as keys
from memloop.wire.base import Wire
from memloop.wire.long_read import LongRead, ReadStatus


class MessageData(Wire):
    """The read that ended; the client fetches the result itself."""

    id: str
    object: Literal["long_read"] = "long_read"
    status: ReadStatus


class Message(Wire):
    """The body of a webhook."""

    type: str
    timestamp: datetime
    data: MessageData


class Delivery(Wire):
    """One message to one address."""

    id: str
    tenant: str
    url: str
    body: str


def delivery_id(read_id: str) -> str:
    """Return the id of the message about a read's end."""
    return keys.delivery_id(read_id, hashlib.sha256(read_id.encode()).hexdigest()[:32])


def delivery_of(record: LongRead, *, tenant: str, url: str, at: keys.Partition) -> Submission:
    """Return the job that notifies ``url`` of the read's end; ``at`` is the read's partition."""
    message = Message(
        type=f"long_read.{record.status}",
        timestamp=datetime.fromtimestamp(record.completed_at or time.time(), UTC),
        data=MessageData(id=record.id, status=record.status),
    )
    delivery = Delivery(id=delivery_id(record.id), tenant=tenant, url=url, body=message.model_dump_json())
    return Submission(
        job_id=delivery.id,
        lane=delivery.id,
        created_ms=int(time.time() * 1000),
        index=at.webhooks_of(tenant),
        fields={"tenant": tenant, "status": "queued", "payload": delivery.model_dump_json()},
    )
