"""Finds the writes that may be on some copies only, and lets one store at a time settle those of a user.

A Qdrant cluster that refuses a write, because too few copies took it, leaves it on those that did. The repeated write
could read such a copy, find its work done, and be acknowledged without any write. So each write notes its points in
Redis before they are sent (``open``) and takes the note away when it is over (``close``). A note that stays belongs to
a write that was refused, or whose store is dead. Until the write is settled, no other write of the user begins:

    take    refused while a write of the user is on its way, or the user is erased; no write opens from here on
    …       reads the noted points from one copy, writes what is there to all, deletes what is not
    done    removes the notes, lets writes in

The result is that of a write that happened before, or never. docs/decisions/0063-refused-writes-are-settled.md argues
why.
"""

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from memloop.wire.errors import Unavailable
from memloop.wire.memory import Namespace
from memloop_state.store.erasures import Begun, Claim, Erasures, Moved, Unsettled

_PATIENCE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Taken:
    """The right to settle: the points of a user's writes, by each write's name."""

    namespace: Namespace
    name: str
    gen: str
    writes: dict[str, Sequence[str]]

    @property
    def ids(self) -> tuple[str, ...]:
        """All points, once."""
        return tuple(dict.fromkeys(one for ids in self.writes.values() for one in ids))


class Settlings:
    """Every method raises ``Unavailable`` when Redis is unreachable."""

    def __init__(self, erasures: Erasures) -> None:
        self._erasures = erasures

    async def take(self, namespace: Namespace) -> Taken | None:
        """None where nothing is unsettled. Raises ``Moved``, and ``Unsettled`` if writes do not pause in time."""
        name, gen, deadline = uuid.uuid4().hex, self._erasures.standing.gen, time.monotonic() + _PATIENCE_S
        while True:
            reply = await self._run("settle", namespace, name, self._erasures.open_ms, gen)
            state, _, detail = reply.partition(" ")
            if state == "ok":
                return Taken(namespace, name, gen, {one: json.loads(note) for one, note in json.loads(detail)})
            if state == "none":
                return None
            if state == "moved":
                raise Moved(self._erasures.standing)
            if time.monotonic() > deadline:
                raise Unsettled(namespace, self._erasures.pause)
            await self._erasures.pause()

    async def done(self, taken: Taken) -> None:
        """Remove the notes. Raises ``Unavailable`` if the settling took too long: another one may have begun."""
        names = json.dumps(list(taken.writes))
        if await self._run("settled", taken.namespace, taken.name, taken.gen, names) == "late":
            raise Unavailable("Settling a refused write took too long.", code="write_unsettled", retry_after_s=1.0)

    async def failed(self, taken: Taken) -> None:
        """Let others try."""
        await self._run("settled", taken.namespace, taken.name, taken.gen, "")

    async def some(self, limit: int) -> list[Namespace]:
        """Users with writes that are not over, from each partition as many; none where points have no copies."""
        users: list[str] = []
        if not self._erasures.standing.has_copies:
            return []
        for part in self._erasures.keys.partitions:
            users += await self._erasures.step.rows("some", [part.root], [self._erasures.standing.site, limit])
        return [Namespace.model_validate_json(user) for user in users]

    async def _run(self, step: str, namespace: Namespace, *args: Any) -> str:
        [reply] = await self._erasures.each(step, [Begun(Claim(namespace), "")], *args)
        return reply
