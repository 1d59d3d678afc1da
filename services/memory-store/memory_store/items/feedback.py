"""Records clients' verdicts on memories."""

from memloop.wire.errors import NotFound
from memloop.wire.feedback import Feedback, FeedbackRequest
from memloop.wire.memory import MemoryItem
from memory_store.items.documents import Clock, Record, now
from memory_store.items.guarded import GuardedStore, repeated_when_moved
from memory_store.items.lookup import Owned, stored
from memory_store.items.namespace_locks import NamespaceLocks
from memory_store.items.points import restated
from memory_store.metrics import Metrics
from memory_store.vectors.port import VectorStore


class Feedbacks:
    """``POST /v1/items/{id}/feedback``."""

    def __init__(
        self,
        vectors: VectorStore,
        *,
        locks: NamespaceLocks,
        guarded: GuardedStore,
        metrics: Metrics,
        clock: Clock = now,
    ) -> None:
        self._vectors = vectors
        self._locks = locks
        self._guarded = guarded
        self._given = metrics.feedback
        self._clock = clock

    @repeated_when_moved
    async def give(self, owned: Owned, request: FeedbackRequest) -> MemoryItem:
        """Keep the verdict on one version, in place of an earlier one; the version's number stays.

        Repeating a verdict changes nothing. Raises ``NotFound``: unknown, of another tenant, deleted or expired.
        """
        namespace = (await self._visible(owned)).namespace
        async with self._locks.hold(namespace.lane()):
            begun = await self._guarded.begin(namespace)
            record = await self._visible(owned)
            if _said(record) == (request.feedback, request.reason):
                return record.item
            judged = self._judged(record, request)
            await self._guarded.store(begun, await restated(judged, self._vectors))
        self._given.labels(request.feedback or "withdrawn").inc()
        return judged.item

    def _judged(self, record: Record, request: FeedbackRequest) -> Record:
        moment = self._clock()
        verdict = request.feedback
        feedback = Feedback(verdict=verdict, reason=request.reason, at=moment) if verdict else None
        changed = record.with_item(feedback=feedback, updated_at=moment)
        return changed.decided(verdict or "feedback withdrawn", moment)

    async def _visible(self, owned: Owned) -> Record:
        record = await stored(self._vectors, owned)
        if record.is_over(self._clock()):
            raise NotFound("there is no such memory", param="id")
        return record


def _said(record: Record) -> tuple[str | None, str | None]:
    feedback = record.item.feedback
    return (feedback.verdict, feedback.reason) if feedback else (None, None)
