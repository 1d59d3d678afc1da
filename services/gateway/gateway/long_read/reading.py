"""The slice in one value: everything that reading a document takes."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.engine import Backend
from gateway.files import Files
from gateway.long_read.following import Followers, Seats
from gateway.long_read.records import TIERS, ReadRecords
from gateway.memory import Memory
from gateway.queue import LaneQueue
from gateway.settings import GatewaySettings
from gateway.webhooks.webhooks import Webhooks
from memloop_state.link import State

READS_QUEUE = "reads"


@dataclass(frozen=True, slots=True)
class Reading:
    """Long reads. ``queue`` holds the background ones; ``max_chars`` is the longest document in a body."""

    backend: Backend
    queue: LaneQueue
    records: ReadRecords
    followers: Followers
    memory: Memory
    files: Files
    webhooks: Webhooks
    max_chars: int


def open_reading(
    settings: GatewaySettings, state: State, *, backend: Backend, memory: Memory, files: Files, webhooks: Webhooks
) -> Reading:
    """Builds the slice from the settings."""
    keep_ms = int(settings.long_read_keep_s * 1000)
    queue = LaneQueue(state, READS_QUEUE, keep_ms=keep_ms, tiers=TIERS, rules=files.queue.rules)
    records = ReadRecords(state, queue, webhooks.queue)
    seats = Seats(process=settings.max_followers, tenant=settings.tenant_followers)
    return Reading(
        backend=backend,
        queue=queue,
        records=records,
        followers=Followers(state, backend.metrics, seats, look_s=settings.look_s),
        memory=memory,
        files=files,
        webhooks=webhooks,
        max_chars=settings.max_document_chars,
    )


async def reading_of(request: Request) -> Reading:
    """Returns the slice from the application's state."""
    return cast(Reading, request.app.state.reading)


ReadingDep: TypeAlias = Annotated[Reading, Depends(reading_of)]
