"""The changes that a store of points, a removal or an erasure means for readers of the feed."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, cast

from memloop.wire.changes import Change, ChangeType
from memloop.wire.memory import Namespace
from memory_store.items.documents import Cause, newest_decision
from memory_store.vectors.port import Found, Payload, Point

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
    shown = [point for point in points if point.payload["memory_type"] != _RAW]
    made = [(str(point.payload["tenant"]), _change(point.id, point.payload)) for point in shown]
    return [(tenant, change) for tenant, change in made if change is not None]


def retracted(points: Iterable[Point]) -> list[tuple[str, Change]]:
    """Return the changes for stored points that an erasure has deleted."""
    return [
        (tenant, change.model_copy(update={"type": "memory.deleted", "reason": "erased", "supersedes": None}))
        for tenant, change in stored(points)
    ]


def expired(found: Sequence[Found], moment: datetime) -> list[tuple[str, Change]]:
    """Return the changes of live memories that are removed at their end."""
    live = [one for one in found if one.payload["memory_type"] != _RAW and one.payload["status"] == "activated"]
    return [(str(one.payload["tenant"]), _of(one.id, one.payload, "memory.deleted", "expired", moment)) for one in live]


def erased(namespace: Namespace, moment: datetime) -> list[tuple[str, Change]]:
    """Return the change of an erasure."""
    ids = namespace.model_dump(include={"user_id", "agent_id", "run_id"})
    return [(namespace.tenant, Change(type="memory.erased", at=moment, reason="erased", **ids))]


def _change(item_id: str, payload: Payload) -> Change | None:
    """Return what the newest decision on a version means; None for a version that another one overtook or split."""
    newest = newest_decision(payload.get("decisions"))
    kind = TYPES.get(cast(Cause, newest.cause)) if newest else None
    if newest is None or kind is None:
        return None
    if newest.cause != "imported" and newest.at != datetime.fromisoformat(str(payload["updated_at"])):
        return None
    return _of(item_id, payload, kind, newest.cause, newest.at)


def _of(item_id: str, payload: Payload, kind: ChangeType, reason: str, at: datetime) -> Change:
    """Build the change from the fields that it has: the whole memory would be parsed for each written point."""
    ids = {name: payload.get(name) for name in ("version", "user_id", "agent_id", "run_id")}
    supersedes = payload.get("supersedes") if kind == "memory.updated" else None
    return Change.model_validate(
        {"type": kind, "at": at, "reason": reason, "memory_id": item_id, "supersedes": supersedes, **ids}
    )
