"""The tickets of a lane queue: one stream, or one per tier.

Tickets of a more urgent tier are taken first. To prevent starvation, every fourth pick tries the second tier first, and
every sixteenth the third.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from redis import exceptions
from redis.asyncio import Redis

from gateway.queue import scripts as lane_scripts
from gateway.redis import Script, entries, entry_list, text
from memloop.wire.errors import Unavailable
from memloop_service.redis_link import redis_errors

GROUP = "workers"
DEFAULT_TIER = "default"
_EVERY = 4


@dataclass(frozen=True, slots=True)
class Ticket:
    """A stream entry: this lane has work, and this job was its head when the entry was written."""

    id: str
    lane: str
    job_id: str


class Tickets:
    """Takes tickets from the streams of ``tiers``, listed from the most urgent.

    A lane's name begins with its tier and a colon, unless it is the default tier.
    """

    def __init__(self, redis: Redis, stream: str, tiers: Sequence[str]) -> None:
        self._redis = redis
        self._stream = stream
        self._tiers = tuple(tiers)
        self._taken = 0
        self._again = Script(redis, lane_scripts.RETICKET)

    @property
    def streams(self) -> Sequence[str]:
        """The streams, most urgent first."""
        return [self._stream if tier == DEFAULT_TIER else f"{self._stream}:{tier}" for tier in self._tiers]

    def stream_of(self, lane: str) -> str:
        """Return the stream of the lane's tickets."""
        tier, colon, _ = lane.partition(":")
        return f"{self._stream}:{tier}" if colon and tier in self._tiers else self._stream

    async def ensure_groups(self) -> None:
        """Create missing streams and consumer groups."""
        for stream in self.streams:
            if await self._has_group(stream):
                continue  # a full Redis refuses to be asked for it again
            with redis_errors():
                try:
                    await self._redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
                except exceptions.ResponseError as error:
                    if "BUSYGROUP" not in str(error):
                        raise

    async def _has_group(self, stream: str) -> bool:
        with redis_errors():
            return bool(await self._redis.exists(stream) and await self._redis.xinfo_groups(stream))

    async def take(self, consumer: str, *, block_ms: int) -> Ticket | None:
        """Take a new ticket, waiting at most ``block_ms``."""
        ticket = await self._waiting(consumer) if len(self._tiers) > 1 else None
        return ticket or await self._next(consumer, block_ms=block_ms)

    async def pass_back(self, ticket: Ticket) -> None:
        """Return a taken ticket to the queue."""
        await self._again([self.stream_of(ticket.lane)], [GROUP, ticket.id, ticket.lane, ticket.job_id])

    async def claim_stale(self, consumer: str, *, idle_ms: int, count: int) -> list[Ticket]:
        """Claim tickets of one tier whose worker has been silent for ``idle_ms``."""
        for stream in self.streams:
            with redis_errors(), _group_exists():
                reply = await self._redis.xautoclaim(stream, GROUP, consumer, idle_ms, count=count)
            if found := _tickets(entry_list(cast(Sequence[object], reply[1]))):
                return found
        return []

    async def waiting_since_ms(self) -> int | None:
        """Return when the oldest untaken ticket was written, in milliseconds since the epoch."""
        waiting = [since for stream in self.streams if (since := await self._oldest_untaken_ms(stream)) is not None]
        return min(waiting, default=None)

    async def _oldest_untaken_ms(self, stream: str) -> int | None:
        with redis_errors():
            if not await self._redis.exists(stream):
                return None
            groups = cast(Sequence[Mapping[str, object]], await self._redis.xinfo_groups(stream))
            taken = next((text(group["last-delivered-id"]) for group in groups), "0-0")
            untaken = await self._redis.xrange(stream, min=f"({taken}", count=1)
        return next((int(ticket.id.partition("-")[0]) for ticket in _tickets(entry_list(untaken or ()))), None)

    def _in_turn(self) -> Sequence[str]:
        """Return the streams in the order in which to look for the next ticket."""
        streams, turn = self.streams, self._taken + 1
        first = next((tier for tier in range(len(streams) - 1, 0, -1) if turn % _EVERY**tier == 0), 0)
        return [streams[first], *streams[:first], *streams[first + 1 :]]

    async def _waiting(self, consumer: str) -> Ticket | None:
        """Take a ticket that is already in a stream, without waiting."""
        for stream in self._in_turn():
            for ticket in await self._read(consumer, [stream], block_ms=None):
                self._taken += 1
                return ticket
        return None

    async def _next(self, consumer: str, *, block_ms: int) -> Ticket | None:
        """Wait for the first ticket; if several arrive together, return all but one to the queue."""
        tickets = await self._read(consumer, self.streams, block_ms=block_ms)
        for ticket in tickets[1:]:
            await self.pass_back(ticket)
        return tickets[0] if tickets else None

    async def _read(self, consumer: str, streams: Sequence[str], *, block_ms: int | None) -> list[Ticket]:
        """Read at most one ticket of each stream."""
        with redis_errors(), _group_exists():
            reply = await self._redis.xreadgroup(GROUP, consumer, dict.fromkeys(streams, ">"), count=1, block=block_ms)
        return _tickets(entries(reply))


def _tickets(found: Sequence[tuple[str, dict[str, str]]]) -> list[Ticket]:
    return [Ticket(id_, fields["lane"], fields["job"]) for id_, fields in found]


@contextmanager
def _group_exists() -> Generator[None]:
    """Raise Unavailable when Redis lost its data, and with it the group, until ``ensure_groups`` recreates it."""
    try:
        yield
    except exceptions.ResponseError as error:
        if "NOGROUP" not in str(error):
            raise
        raise Unavailable("Redis has lost the queue's consumer group.") from error
