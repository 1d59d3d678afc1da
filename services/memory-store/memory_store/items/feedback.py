"""Records clients' verdicts on memories."""

from memloop.wire.feedback import Feedback, FeedbackRequest
from memloop.wire.memory import MemoryItem
from memory_store.items.batch import updated_point
from memory_store.items.guarded import repeated_when_moved
from memory_store.items.lookup import Owned
from memory_store.items.tools import ItemTools


class Feedbacks:
    """``POST /v1/items/{id}/feedback``."""

    def __init__(self, tools: ItemTools) -> None:
        self._tools = tools

    @repeated_when_moved
    async def give(self, owned: Owned, request: FeedbackRequest) -> MemoryItem:
        """Keep the verdict on one version, in place of an earlier one; the version's number stays.

        Repeating a verdict changes nothing. Raises ``NotFound``: unknown, of another tenant, deleted or expired.
        """
        namespace = (await self._tools.visible(owned)).namespace
        async with self._tools.locks.hold(namespace.lane()):
            begun = await self._tools.guarded.begin(namespace)
            record = await self._tools.visible(owned)
            feedback = record.item.feedback
            if ((feedback.verdict, feedback.reason) if feedback else (None, None)) == (
                request.feedback,
                request.reason,
            ):
                return record.item
            moment, verdict = self._tools.clock(), request.feedback
            given = Feedback(verdict=verdict, reason=request.reason, at=moment) if verdict else None
            changed = record.with_item(feedback=given, updated_at=moment)
            judged = changed.decided(verdict or "feedback withdrawn", moment)
            await self._tools.guarded.store(begun, await updated_point(judged, self._tools.vectors))
        self._tools.metrics.feedback.labels(request.feedback or "withdrawn").inc()
        return judged.item
