"""Writes the audit log: each entry goes to the logger ``memloop.audit`` and to a stream.

To survive floods, the first denial of a kind is written at once; identical ones within ``WINDOW_S`` seconds are counted
and written as one entry. Beyond ``DIFFERENT_IN_A_WINDOW`` kinds, denials are counted without key, route and address.
The script that performs an admin action also stores its entry; this module only logs it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from memloop.chores import alongside
from memloop.wire.errors import DependencyError
from memloop.wire.keys import AuditEntry, AuditKind, AuditPage, AuditRecord
from memloop_state.credentials import ENTRIES_KEPT, audit_stream
from memloop_state.indexes import Streams
from memloop_state.link import State

WINDOW_S: Final = 10.0
DIFFERENT_IN_A_WINDOW: Final = 100
_KEEP_EVERY_S: Final = 0.5
_MOST_WAITING: Final = 500
_OF_ANY_REQUEST: Final = {"at": datetime.fromtimestamp(0, UTC), "request_id": ""}
_OF_ANY_CALLER: Final = {"actor_key": "", "method": "", "route": "", "address": ""}
_AUDIT = logging.getLogger("memloop.audit")


class Auditor:
    """The audit log. Denials are buffered and stored in the background, so that callers never wait for it."""

    def __init__(self, state: State, *, window_s: float = WINDOW_S) -> None:
        self._streams = Streams(state)
        self._window_s = window_s
        self._repeats: dict[AuditEntry, int] = {}
        self._waiting: list[AuditEntry] = []
        self._begun = asyncio.Event()

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Append the entries to their streams. Raises Unavailable, as ``page`` does."""
        some = [(audit_stream(one.kind, one.tenant), {"entry": one.model_dump_json()}) for one in entries]
        await self._streams.append(some, most=ENTRIES_KEPT)

    async def page(self, kind: AuditKind, tenant: str, *, cursor: str | None, limit: int) -> AuditPage:
        """Return entries older than the id ``cursor``, newest first."""
        rows = await self._streams.before(audit_stream(kind, tenant), cursor or "", most=limit + 1)
        data = tuple(
            AuditRecord(id=id_, **AuditEntry.model_validate_json(fields["entry"]).model_dump())
            for id_, fields in rows[:limit]
        )
        more = len(rows) > limit
        return AuditPage(data=data, next_cursor=data[-1].id if more else None, has_more=more)

    def denied(self, entry: AuditEntry) -> None:
        """Write the denial, or count it as a repeat of one that differs in time and request alone."""
        alike = entry.model_copy(update=_OF_ANY_REQUEST)
        if alike not in self._repeats and len(self._repeats) >= DIFFERENT_IN_A_WINDOW:
            entry, alike = entry.model_copy(update=_OF_ANY_CALLER), alike.model_copy(update=_OF_ANY_CALLER)
        if alike in self._repeats:
            self._repeats[alike] += 1
            return
        self._repeats[alike] = 0
        self._write(entry)
        self._begun.set()

    def acted(self, entry: AuditEntry) -> None:
        """Log an admin action whose entry is already stored."""
        _AUDIT.info(entry.action, extra={"fields": entry.model_dump(mode="json", exclude_defaults=True)})

    @asynccontextmanager
    async def keeping(self) -> AsyncGenerator[None]:
        """Store denials until the block exits, then flush the rest."""

        async def keep_windows() -> None:
            while True:
                await self._begun.wait()
                ends_at = asyncio.get_running_loop().time() + self._window_s
                while (left_s := ends_at - asyncio.get_running_loop().time()) > 0:
                    await self._keep()
                    await asyncio.sleep(min(_KEEP_EVERY_S, left_s))
                self._close_window()
                await self._keep()

        try:
            async with alongside(keep_windows()):
                yield
        finally:
            self._close_window()
            await self._keep()

    def _close_window(self) -> None:
        repeats, self._repeats = self._repeats, {}
        self._begun.clear()
        for denial, count in repeats.items():
            if count:
                self._write(denial.model_copy(update={"at": datetime.now(UTC), "count": count}))

    def _write(self, entry: AuditEntry) -> None:
        _AUDIT.warning(entry.action, extra={"fields": entry.model_dump(mode="json", exclude_defaults=True)})
        self._waiting.append(entry)
        del self._waiting[:-_MOST_WAITING]

    async def _keep(self) -> None:
        """Store the buffered entries. Without the state the newest stay buffered; the log has them all."""
        entries = list(self._waiting)
        with suppress(DependencyError):
            if entries:
                await self.append(entries)
                kept = {id(entry) for entry in entries}
                self._waiting = [entry for entry in self._waiting if id(entry) not in kept]
