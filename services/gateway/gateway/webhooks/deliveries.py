"""A webhook as the queue keeps it.

Its id follows from the read's, so that a read that is ended again after a crash queues nothing new, and a receiver can
tell a repeated delivery. The body is made once: every attempt sends the same bytes.
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
    """What the message is about; the client asks for the rest."""

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
    """The id of the message about a read's end."""
    return keys.delivery_id(read_id, hashlib.sha256(read_id.encode()).hexdigest()[:32])


def delivery_of(record: LongRead, *, tenant: str, url: str, at: keys.Partition) -> Submission:
    """The job that tells ``url`` how the read ended; ``at`` is where the read lies."""
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
