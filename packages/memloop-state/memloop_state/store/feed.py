"""Keeps each tenant's changes in Redis: bounded in number and time, in the order in which they happened.

The vectors are in another system, so a write notes its changes before they are stored and publishes them afterwards.
What a store that died has noted is published by another one: a change may appear twice, and never not at all
(docs/decisions/0080-changes-are-published-by-the-store.md).
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import TypeAdapter

from memloop.wire.changes import LATEST, OLDEST, Change, ChangePage, MemoryChange, Newest, StoreChanges
from memloop.wire.errors import Gone
from memloop.wire.memory import Scope
from memloop_state.link import State, all_sent
from memloop_state.steps import Partitions, Steps

_OVER_MS: Final = 30_000
"""Longer than a write is on its way into the vector store."""
_CHANGES: Final = TypeAdapter(dict[str, tuple[Change, ...]])


class ChangeFeed:
    """The feeds of all tenants. Every method raises ``Unavailable`` when Redis is unreachable.

    ``most`` entries of a tenant are kept, each for ``keep_s`` seconds at the longest.
    """

    def __init__(self, link: State, *, most: int, keep_s: float, over_ms: int = _OVER_MS) -> None:
        self._link = link
        self._keys = Partitions(link)
        self._limits = [most, int(keep_s * 1000)]
        self._over_ms = over_ms
        self._step = Steps(link, "feed")

    async def note(self, changes: Mapping[str, Sequence[Change]]) -> str:
        """Note changes by tenant that are about to be stored; returns the note's name, empty without changes."""
        if not changes:
            return ""
        name = uuid.uuid4().hex
        for tenant, some in changes.items():
            noted = _CHANGES.dump_json({tenant: tuple(some)}, exclude_none=True).decode()
            unsure = self._keys.of_name(tenant).key("changes-unsure")
            await self._step("note", [unsure], [name, noted], acknowledged=True)
        return name

    async def publish(self, changes: Mapping[str, Sequence[Change]], *, note: str = "") -> None:
        """Append changes by tenant, and remove their note."""
        for tenant, some in changes.items():
            part = self._keys.of_name(tenant)
            keys = [part.hidden("changes", tenant), part.hidden("changes-state", tenant), part.key("changes-unsure")]
            texts = [change.model_dump_json(exclude_none=True) for change in some]
            await self._step("publish", keys, [note, *self._limits, *texts], acknowledged=True)

    async def page(self, asked: StoreChanges) -> ChangePage:
        """Return the changes after the cursor that lie in the scope. Raises ``Gone`` when some of them were cut off."""
        tenant = asked.scope.tenant
        part = self._keys.of_name(tenant)
        args = [asked.after, asked.limit, *self._limits]
        state, *rest = await self._step.rows(
            "read", [part.hidden("changes", tenant), part.hidden("changes-state", tenant)], args
        )
        if state == "old":
            raise Gone(
                "Changes after this cursor are no longer kept: read the memories again, then go on after 'latest'.",
                param="after",
                code="cursor_too_old",
            )
        last, *entries = rest
        found = [
            MemoryChange(id=id_, **Change.model_validate_json(text).model_dump())
            for id_, text in zip(entries[::2], entries[1::2], strict=True)
        ]
        cursor = found[-1].id if found else last if asked.after in (LATEST, OLDEST) else asked.after
        changes = tuple(change for change in found if _lies_in(change, asked.scope))
        return ChangePage(changes=changes, cursor=cursor, has_more=len(found) == asked.limit and cursor != last)

    async def newest(self, tenants: Sequence[str]) -> Newest:
        """Return the place of each tenant's newest change."""
        states = [self._keys.of_name(tenant).hidden("changes-state", tenant) for tenant in tenants]
        found = await all_sent(self._link, [("HGET", state, "last") for state in states])
        return Newest(cursors={tenant: last or OLDEST for tenant, last in zip(tenants, found, strict=True)})

    async def publish_noted(self) -> int:
        """Publish the noted changes of writes that ended without doing so; returns the number of those writes."""
        done = 0
        for part in self._keys.partitions:
            flat = await self._step.rows("stale", [part.key("changes-unsure")], [self._over_ms])
            for name, noted in zip(flat[::2], flat[1::2], strict=True):
                await self.publish(_CHANGES.validate_json(noted), note=name)
                done += 1
        return done


def _lies_in(change: Change, scope: Scope) -> bool:
    """Whether the change is about memories of the scope; an erasure may reach further than the scope."""
    erased = change.type == "memory.erased"
    pairs = ((scope.user_id, change.user_id), (scope.agent_id, change.agent_id), (scope.run_id, change.run_id))
    return all(asked is None or asked == own or (erased and own is None) for asked, own in pairs)
