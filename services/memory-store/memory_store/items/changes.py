"""The changes that a store of points, a removal or an erasure means for readers of the feed."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, cast

from memloop.wire.changes import Change, ChangeType
from memloop.wire.memory import Namespace
from memory_store.items.documents import Record, from_payload
from memory_store.items.explanations import Cause
from memory_store.vectors.port import Found, Point

TYPES: Final[Mapping[Cause, ChangeType]] = {
    "new fact": "memory.added",
    "imported": "memory.added",
    "recovered": "memory.added",
    "deleted": "memory.deleted",
    "changed fact": "memory.updated",
    "older news": "memory.updated",
    "interlude": "memory.updated",
    "same fact": "memory.updated",
    "known later": "memory.updated",
    "near duplicate": "memory.updated",
    "edited": "memory.updated",
    "helpful": "memory.updated",
    "wrong": "memory.updated",
    "outdated": "memory.updated",
    "feedback withdrawn": "memory.updated",
}
"""By the cause of a version's newest decision. A version that was overtaken is named by the one that did; raw turns
are not in the feed.
"""
_RAW: Final = "RawTurn"


def stored(points: Iterable[Point]) -> list[tuple[str, Change]]:
    """Return the changes, with their tenants, of points that are stored; raw turns have none."""
    shown = [from_payload(point.id, point.payload) for point in points if point.payload["memory_type"] != _RAW]
    return [(record.tenant, change) for record in shown if (change := _change(record)) is not None]


def taken_back(points: Iterable[Point]) -> list[tuple[str, Change]]:
    """Return the changes of points that an erasure takes back after they were stored."""
    return [(tenant, _deletion(change, "erased")) for tenant, change in stored(points)]


def expired(found: Sequence[Found], moment: datetime) -> list[tuple[str, Change]]:
    """Return the changes of live memories that are removed at their end."""
    live = [one for one in found if one.payload["memory_type"] != _RAW and one.payload["status"] == "activated"]
    return [
        (record.tenant, _of(record, "memory.deleted", "expired", moment))
        for record in (from_payload(one.id, one.payload) for one in live)
    ]


def erased(namespace: Namespace, moment: datetime) -> list[tuple[str, Change]]:
    """Return the change of an erasure."""
    ids = namespace.model_dump(include={"user_id", "agent_id", "run_id"})
    return [(namespace.tenant, Change(type="memory.erased", at=moment, reason="erased", **ids))]


def _change(record: Record) -> Change | None:
    """Return what the record's newest decision means; None for a version that another one overtook or split."""
    if not record.decisions:
        return None
    newest = record.decisions[-1]
    kind = TYPES.get(cast(Cause, newest.cause))
    if kind is None or (newest.cause != "imported" and newest.at != record.item.updated_at):
        return None
    return _of(record, kind, newest.cause, newest.at)


def _of(record: Record, kind: ChangeType, reason: str, at: datetime) -> Change:
    item = record.item
    return Change(
        type=kind,
        at=at,
        reason=reason,
        memory_id=item.id,
        version=item.version,
        supersedes=item.supersedes if kind == "memory.updated" else None,
        user_id=item.user_id,
        agent_id=item.agent_id,
        run_id=item.run_id,
    )


def _deletion(change: Change, reason: str) -> Change:
    return change.model_copy(update={"type": "memory.deleted", "reason": reason, "supersedes": None})
