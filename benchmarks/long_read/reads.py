"""Uploads documents and reads them in the background, as a client does."""

import asyncio
import time
from dataclasses import dataclass
from math import inf
from pathlib import Path

from memloop.wire.long_read import Document, LongRead, LongReadRequest
from memloop_clients import GatewayClient, Timeouts
from memloop_clients.gateway_memory import ended

_POLL_S = 0.25
_TIMEOUTS = Timeouts(read_s=120.0)


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished read, and the seconds between its event ``in_progress`` and its last event."""

    read: LongRead
    seconds: float

    @property
    def chunks(self) -> int:
        """Return the document's number of chunks."""
        return self.read.progress.chunks_total


def client_of(url: str) -> GatewayClient:
    """Create a client of the stack's gateway."""
    return GatewayClient(url, timeouts=_TIMEOUTS)


async def uploaded(client: GatewayClient, document: Path) -> str:
    """Upload a document. Returns the file's ID once its text is extracted; raises RuntimeError if that fails."""
    made = await client.upload(document)
    while made.status == "uploaded":
        await asyncio.sleep(_POLL_S)
        made = await client.file(made.id)
    if made.status != "processed":
        raise RuntimeError(f"{document} is {made.status}: {made.status_details}")
    return made.id


def request(file_id: str, *, question: str, model: str, chunk_tokens: int | None = None) -> LongReadRequest:
    """Build the request of a question about an uploaded document."""
    return LongReadRequest(
        model=model, question=question, document=Document(file_id=file_id), chunk_tokens=chunk_tokens
    )


async def finished(client: GatewayClient, read_id: str) -> Finished:
    """Wait for a read's end; its events give its time."""
    what = f"the read {read_id}"
    read = await ended(lambda: client.read(read_id), what=what, wait_s=inf, pauses_s=(_POLL_S, _POLL_S))
    return Finished(read, await _seconds(client, read_id))


async def _seconds(client: GatewayClient, read_id: str) -> float:
    first = last = 0.0
    async for event in client.read_events(read_id):
        if event.at is not None:
            last = event.at.timestamp()
            first = last if event.type == "long_read.in_progress" else first
    return last - first


def now_s() -> float:
    """Return the seconds of a monotonic clock."""
    return time.monotonic()
