"""The operator's rules for queues: how many jobs a tenant gives in turn, and how many bytes of them may wait."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from memloop.wire.errors import RateLimited, Unavailable
from memloop_state.room import Room


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The rules for the jobs of clients. Without ``room`` all are admitted.

    ``refused`` is called with the queue and ``quota`` or ``unavailable`` for each job that is not.
    """

    weights: Mapping[str, int] = field(default_factory=dict[str, int])
    room: Room | None = None
    refused: Callable[[str, str], None] = lambda queue, reason: None

    async def quota_bytes(self) -> int:
        """Return the bytes of jobs that one tenant may have queued in a partition; 0 is no limit.

        Raises Unavailable while Redis is nearly full.
        """
        return 0 if self.room is None else await self.room.check()

    @contextmanager
    def counted(self, queue: str) -> Generator[None]:
        """Count a job that is refused: the tenant is over its quota, or Redis is nearly full or unreachable."""
        try:
            yield
        except (RateLimited, Unavailable) as error:
            self.refused(queue, "quota" if isinstance(error, RateLimited) else "unavailable")
            raise
