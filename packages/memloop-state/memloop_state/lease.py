"""Leases, and requests that are answered once: who is at work until when, and in the end the answer.

A record is a hash: the request's hash, the attempt's name and seed, until when it is at work, the answer. It is noted
by *subjects*, of which each has an index, so that ``forget`` finds the answers that hold a subject's data.
"""

from typing import Any, Final, Literal, TypeAlias

from memloop_state.indexes import Indexes
from memloop_state.link import State
from memloop_state.steps import Steps

KEEP_MS: Final = 24 * 60 * 60 * 1000
LEASE_MS: Final = 30_000
"""How long a record stays taken by a process that gives no sign any more."""
Taken: TypeAlias = Literal["yours", "done", "busy", "other"]


class Leases:
    """Leases by name. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
        self._steps = Steps(redis, "lease")

    async def hold(self, name: str, holder: str, *, lease_ms: int) -> bool:
        """Take or renew the lease; return whether the holder has it."""
        return bool(await self._steps("hold", [f"memloop:{name}"], [holder, lease_ms]))


class Once:
    """The answers that are kept for 24 hours. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
        self._steps = Steps(redis, "lease")
        self._indexes = Indexes(redis)

    async def take(self, record: str, request: str, attempt: str) -> tuple[Taken, list[str]]:
        """Begin an attempt: ``yours`` with the seed, ``done`` with status, media type and answer, ``busy``, ``other``.

        ``request`` is a hash: of another one the record is an ``other``.
        """
        found: list[Any] = await self._steps.rows(
            "take", [f"memloop:once:{record}"], [request, attempt, LEASE_MS, KEEP_MS], acknowledged=True
        )
        return found[0], found[1:]

    async def extend(self, record: str, attempt: str) -> None:
        """Keep the record taken for another lease."""
        await self._steps("extend", [f"memloop:once:{record}"], [attempt, LEASE_MS])

    async def keep(self, record: str, attempt: str, *, status: int, media_type: str, answer: str) -> None:
        """Keep the attempt's answer, unless one of its subjects was forgotten meanwhile."""
        await self._steps("keep", [f"memloop:once:{record}"], [attempt, KEEP_MS, status, media_type, answer])

    async def release(self, record: str, attempt: str, how: Literal["free", "again"]) -> None:
        """End the attempt without an answer: any request may come, or the same attempt again."""
        await self._steps("release", [f"memloop:once:{record}"], [attempt, how])

    async def note(self, subject: str, record: str) -> None:
        """Note that the record's answer will hold the subject's data."""
        await self._steps("note", [f"memloop:once-of:{subject}"], [f"memloop:once:{record}", KEEP_MS])

    async def forget(self, subject: str) -> int:
        """Delete the answers that hold the subject's data; those of requests at work will not be kept."""
        deleted = 0
        for record in await self._indexes.ids(f"memloop:once-of:{subject}"):
            if await self._steps("forget", [record], [], acknowledged=True):
                deleted += 1
                await self._indexes.remove(f"memloop:once-of:{subject}", record)
        return deleted
