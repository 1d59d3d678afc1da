"""Audits the live memories of a namespace, page by page, in a thread."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Final

from memloop.wire.memory import Namespace
from memloop.wire.quality import QualityAudit, StoreAudit
from memloop_service import of_app
from memory_store.embedding.encoding import TextEncoding
from memory_store.items.documents import Clock, View, from_payload, now, within
from memory_store.items.routes import GateDep, store_router
from memory_store.metrics import Metrics
from memory_store.quality.suspects import Suspects, Words
from memory_store.vectors.filters import Equals, all_of
from memory_store.vectors.port import Collection

MOST_MEMORIES: Final = 10_000
_PAGE = 500
_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Audits:
    """``POST /v1/items/audit``. Two run at once; others wait. ``most`` bounds the memories of one audit."""

    vectors: Collection
    encoding: TextEncoding
    metrics: Metrics
    clock: Clock = now
    most: int = MOST_MEMORIES
    running: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def audit(self, request: StoreAudit) -> QualityAudit:
        """Examine the namespace's live memories, in the order of ids, up to the bound."""
        async with self.running:
            words = Words(self.encoding.terms, self.encoding.marked_words)
            at, days = self.clock(), request.stale_after_days
            suspects = Suspects(words, at, timedelta(days=days) if days else None)
            complete = await self._examine(request.namespace, suspects)
            namespace = request.namespace
            raw = all_of(
                [within(namespace), View(include_raw=True).condition(suspects.at), Equals("memory_type", "RawTurn")]
            )
            findings = await asyncio.to_thread(suspects.findings, examples=request.examples)
            audit = QualityAudit(
                user_id=namespace.user_id,
                agent_id=namespace.agent_id,
                run_id=namespace.run_id,
                at=suspects.at,
                memories=suspects.memories,
                raw_turns=await self.vectors.count(where=raw),
                complete=complete,
                feedback=dict(suspects.feedback),
                findings=findings,
            )
        self.metrics.audited.labels("memories").inc(audit.memories)
        for finding in audit.findings:
            self.metrics.audited.labels(finding.suspicion).inc(finding.memories)
        return audit

    async def _examine(self, namespace: Namespace, suspects: Suspects) -> bool:
        """Returns whether all memories were examined."""
        where = all_of([within(namespace), View().condition(suspects.at)])
        start_id: str | None = None
        while (room := self.most - suspects.memories) > 0:
            page = await self.vectors.scroll(where=where, limit=min(_PAGE, room), start_id=start_id)
            records = (from_payload(one.id, one.payload) for one in page.found)
            await asyncio.to_thread(suspects.take, records)
            if page.next_id is None:
                return True
            start_id = page.next_id
        return False


router = store_router(tags=["items"])


@router.post("/items/audit")
async def audit(request: StoreAudit, audits: Annotated[Audits, of_app("audits")], gate: GateDep) -> QualityAudit:
    async with gate.shared():  # waits while another collection is put in service
        return await audits.audit(request)
