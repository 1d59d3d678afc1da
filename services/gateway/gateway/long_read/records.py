"""Stores long reads: record, payload, event stream and the tenant's index.

The event of sequence number N is entry ``0-(N+1)`` of the read's stream, so a number is written once. After a crash a
resumed read repeats its steps from the journal; events that were published before are not published again.
"""

import hashlib
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, TypeAlias

from pydantic import TypeAdapter

from gateway.files import Blob, ReadableFile
from gateway.queue import DEFAULT_TIER, JobCancelled, JobGone, LaneQueue, Submission
from gateway.webhooks import deliveries
from memloop.profiles import well_formed
from memloop.wire.base import Wire
from memloop.wire.errors import Erased, NotFound, OtherTenants
from memloop.wire.lists import Deleted, ListPage
from memloop.wire.long_read import LongRead, LongReadRequest, ReadEvent, ReadStatus, ServiceTier
from memloop.wire.memory import Namespace
from memloop_state.link import State
from memloop_state.owners import Owner
from memloop_state.steps import Partitions

TERMINAL: tuple[ReadStatus, ...] = ("completed", "failed", "cancelled", "incomplete")
TIERS: tuple[ServiceTier, ...] = ("priority", "default", "flex")
"""The most urgent first."""
_ABANDONED_AFTER_MS = 3600 * 1000
"""A foreground read whose process died disappears after this long without an event."""
KIND: Final = "long_reads"
"""What reads are among the records of their owners."""
_NONE = "There is no long read {!r}."
_Row: TypeAlias = tuple[float, str]
"""When a read was made, in milliseconds since the epoch, and its id: the order of a tenant's list."""
_END: _Row = (math.inf, "")
_BLOBS: Final = TypeAdapter(tuple[Blob, ...])


class ReadJob(Wire):
    """The payload of a background read. ``text`` is its document when that is in the storage, not in the request.

    ``files`` are the files that it reads: of a single one, ``text`` is the text.

    ``model`` is the one that reads, also where the request names none: every run of the read is its own. ``owners`` are
    the users whose data it holds: whose memory it saves to, who the request names, whose files it reads. ``began`` is
    the newest fencing token at its admission: of an owner that was erased since, nothing is kept.
    """

    read_id: str
    tenant: str
    model: str
    request: LongReadRequest
    text: Blob | None = None
    files: tuple[ReadableFile, ...] = ()
    owners: tuple[Namespace, ...] = ()
    began: int = 0

    @property
    def owned(self) -> tuple[Owner, ...]:
        """The owners, as records are noted by them."""
        return tuple(Owner(namespace, self.began) for namespace in self.owners)

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """Everything in the storage that the read needs."""
        return tuple(file.text for file in self.files) if len(self.files) > 1 else (self.text,) if self.text else ()

    @property
    def content(self) -> str:
        """A name of the document's content: equal for reads of equal files."""
        return "+".join(blob.sha256 for blob in self.blobs) or self.read_id

    def document_digest(self) -> str:
        """Return 12 hex digits of the document's content: equal for a text in the request, the storage and a file.

        The order of several files does not matter. CPU work: run it in a thread.
        """
        texts = sorted(blob.sha256 for blob in self.blobs)
        if not texts:
            texts = [hashlib.sha256(well_formed(self.request.document.text or "").encode()).hexdigest()]
        return hashlib.sha256("+".join(texts).encode()).hexdigest()[:12]


class ReadPage(ListPage[LongRead]):
    """``GET /v1/long-read``: newest first."""


class ReadDeleted(Deleted):
    """``DELETE /v1/long-read/{id}``."""

    object: str = "long_read"


class ReadRecords:
    """Stores reads, each visible to its own tenant only. Methods raise Unavailable."""

    def __init__(self, state: State, queue: LaneQueue, webhooks: LaneQueue) -> None:
        self._queue = queue
        self._webhooks = webhooks
        self._keys = Partitions(state)

    async def enqueue(self, job: ReadJob, record: LongRead) -> ReadEvent:
        """Queue a background read; return its ``queued`` event once it is durable. Raises as ``LaneQueue.admit``."""
        event = ReadEvent(type="long_read.queued", sequence_number=0, read=record, at=datetime.now(UTC))
        fields = {
            "tenant": job.tenant,
            "status": "queued",
            "record": record.model_dump_json(),
            "payload": job.model_dump_json(),
        }
        if job.request.webhook is not None:
            fields["webhook"] = job.request.webhook.url
        first = event.model_dump_json(exclude_none=True)
        await self._queue.admit(replace(self._submission(job, record, fields), first_event=first))
        return event

    async def open(self, job: ReadJob, record: LongRead) -> None:
        """Store a foreground read, which no worker runs. Raises Erased when an owner was erased since it began."""
        fields = {"tenant": job.tenant, "status": record.status, "record": record.model_dump_json()}
        await self._queue.record(self._submission(job, record, fields), keep_ms=_ABANDONED_AFTER_MS)

    def _submission(self, job: ReadJob, record: LongRead, fields: Mapping[str, str]) -> Submission:
        """Return the job of a read. Its blobs stand beside the payload, which ends with the run."""
        if job.blobs:
            fields = {**fields, "blobs": _BLOBS.dump_json(job.blobs).decode()}
        return Submission(
            job_id=record.id,
            lane=_lane(record),
            created_ms=int(time.time() * 1000),
            index=self._index(job.tenant, record.id),
            fields=fields,
            owners=job.owned,
            kind=KIND,
        )

    def _index(self, tenant: str, read_id: str) -> str:
        return self._keys.of_id(read_id).key("reads", tenant)

    async def publish(self, event: ReadEvent, record: LongRead, *, foreground: bool) -> None:
        """Append the event and store the record of that moment; has no effect for an event that exists.

        Raises JobGone when the read was deleted, JobCancelled when its client cancelled it.
        """
        lasts = record.status in TERMINAL
        goes_on = await self._queue.jobs.publish(
            record.id,
            [event.model_dump_json(exclude_none=True)],
            first=event.sequence_number,
            record=record.model_dump_json(),
            keep_ms=self._queue.keep_ms if lasts else _ABANDONED_AFTER_MS if foreground else 0,
            sure=lasts,
        )
        if not (goes_on or lasts):
            raise JobCancelled

    async def check(self, read_id: str) -> None:
        """Raise JobGone when the read was deleted, JobCancelled when its client cancelled it."""
        status, cancel = await self._queue.jobs.get(read_id, "status", "cancel")
        if not status:
            raise JobGone(read_id)
        if cancel:
            raise JobCancelled

    async def get(self, tenant: str, read_id: str) -> LongRead:
        """Return the read. Raises NotFound when the tenant has no such read."""
        owner, record = await self._stored(read_id)
        if record is None:
            raise NotFound(_NONE.format(read_id), param="read_id")
        if owner != tenant:
            raise OtherTenants(_NONE.format(read_id), param="read_id")
        return record

    async def blobs(self, read_id: str) -> tuple[Blob, ...]:
        """Return the contents that the read took hold of, also when it is over."""
        (stored,) = await self._queue.jobs.get(read_id, "blobs")
        return _BLOBS.validate_json(stored) if stored else ()

    async def page(self, tenant: str, *, limit: int, after: str | None) -> ReadPage:
        """Return reads older than ``after``, newest first. Raises NotFound for an unknown ``after``."""
        before = _END
        if after is not None:
            created_ms = await self._queue.indexes.number(self._index(tenant, after), after)
            if created_ms is None:
                raise NotFound(_NONE.format(after), param="after")
            before = created_ms, after
        rows: list[_Row] = []
        for partition in self._keys.partitions:
            index, start, found, page = partition.key("reads", tenant), 0, list[_Row](), [before]
            while page and len(found) <= limit:  # the newest of the partition before that one
                page = await self._queue.indexes.newest(index, until=before[0], start=start, most=limit + 1)
                found += [row for row in page if row < before]
                start += limit + 1
            rows += found
        ids = [id_ for _, id_ in sorted(rows, reverse=True)[: limit + 1]]
        reads = [(await self._stored(id_))[1] for id_ in ids]
        data = [read for read in reads if read is not None][:limit]
        return ReadPage.of(data, [read.id for read in data], has_more=len(ids) > limit)

    async def cancel(self, tenant: str, read_id: str) -> LongRead:
        """Stop the read; has no effect once it has ended. The process that runs it cancels it within seconds."""
        record = await self.get(tenant, read_id)
        cancelled = record.ended("cancelled")
        record_json = cancelled.model_dump_json()
        (url,) = await self._queue.jobs.get(read_id, "webhook")
        then = None
        if url:
            here = self._keys.of_id(read_id)
            then = self._webhooks.entry(deliveries.delivery_of(cancelled, tenant=tenant, url=url, at=here))
        outcome = await self._queue.cancel(
            _lane(record), read_id, record=record_json, keep_ms=self._queue.keep_ms, then=then
        )
        if outcome == "cancelled":
            await self.publish(await self.closing_event(cancelled), cancelled, foreground=False)
        return await self.get(tenant, read_id)

    async def delete(self, tenant: str, read_id: str) -> ReadDeleted:
        """Delete record, document and events; a running read stops. Raises NotFound."""
        record = await self.get(tenant, read_id)
        await self._queue.forget(_lane(record), read_id)
        message_id = deliveries.delivery_id(read_id)
        await self._webhooks.forget(message_id, message_id)
        return ReadDeleted(id=read_id)

    async def notify(self, job: ReadJob, record: LongRead) -> None:
        """Queue the webhook of a read that ended, if it has one; harmless when it was queued before.

        To be called before the read's job is finished: whoever dies in between has the job, and so this, done again.
        """
        if job.request.webhook is not None:
            here, tenant, url = self._keys.of_id(record.id), job.tenant, job.request.webhook.url
            delivery = deliveries.delivery_of(record, tenant=tenant, url=url, at=here, owners=job.owned)
            with suppress(Erased):
                await self._webhooks.submit(delivery)

    async def closing_event(self, record: LongRead) -> ReadEvent:
        """Build the event that ends the read's stream, numbered after its last event."""
        return terminal_event(record, await self._queue.jobs.last_event(record.id) + 1)

    async def _stored(self, read_id: str) -> tuple[str, LongRead | None]:
        """Return the tenant and the record of a read."""
        if not read_id.startswith("lr_"):
            return "", None
        tenant, stored, status = await self._queue.jobs.get(read_id, "tenant", "record", "status")
        if not stored:
            return "", None
        record = LongRead.model_validate_json(stored)
        if record.status not in TERMINAL:
            record = record.model_copy(update={"status": status})
        return tenant, record


def terminal_event(record: LongRead, sequence_number: int) -> ReadEvent:
    """Build the event that ends a read in the record's status."""
    values = {
        "type": f"long_read.{record.status}",
        "sequence_number": sequence_number,
        "read": record,
        "at": datetime.now(UTC),
    }
    return ReadEvent.model_validate(values)


def _lane(record: LongRead) -> str:
    """Return a read's lane, whose name holds its tier."""
    return record.id if record.service_tier == DEFAULT_TIER else f"{record.service_tier}:{record.id}"
