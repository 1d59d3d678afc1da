"""A vector store in plain dictionaries, for tests that run many short histories. It cannot rank."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path

from memloop.wire.errors import NotSupported
from memory_store.vectors.filters import AllOf, AnyOf, Condition, Equals, Ids, Missing, Not, OneOf, TimeRange
from memory_store.vectors.port import Collection, Found, Page, Payload, Placed, Point, Query, Ranked
from memory_store.vectors.schema import CollectionSpec

Turn = Callable[[], Awaitable[None]]


async def at_once() -> None:
    """The turn of whoever need not wait for one."""


def holds(condition: Condition, point: Point) -> bool:
    """Whether the condition holds for a stored point."""
    match condition:
        case AllOf(conditions):
            return all(holds(one, point) for one in conditions)
        case AnyOf(conditions):
            return any(holds(one, point) for one in conditions)
        case Not(inner):
            return not holds(inner, point)
        case Ids(ids):
            return point.id in ids
        case Equals() | OneOf() | Missing() | TimeRange():
            return _matches(condition, _values(point.payload, condition.field))
        case _:
            raise NotImplementedError(condition)


def _matches(condition: Equals | OneOf | Missing | TimeRange, values: list[object]) -> bool:
    match condition:
        case Equals(_, value):
            return value in values
        case OneOf(_, wanted):
            return not set(wanted).isdisjoint(map(str, values))
        case Missing():
            return not values
        case TimeRange():
            return any(_inside(condition, datetime.fromisoformat(str(one))) for one in values)


def _values(payload: Payload, name: str) -> list[object]:
    value = payload.get(name)
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _inside(bounds: TimeRange, moment: datetime) -> bool:
    moment = moment.replace(tzinfo=moment.tzinfo or UTC)
    above = (bounds.gt is None or moment > bounds.gt) and (bounds.gte is None or moment >= bounds.gte)
    return above and (bounds.lt is None or moment < bounds.lt) and (bounds.lte is None or moment <= bounds.lte)


@dataclass
class PlainCollection:
    """``Collection`` over a dictionary; every operation waits for its ``turn``, then happens at once."""

    name: str
    points: dict[str, Point]
    turn: Turn = at_once

    async def close(self) -> None:
        """Nothing is held."""

    async def admit(self) -> None:
        """There is always room."""

    async def ping(self) -> None:
        """Always there."""

    async def upsert(self, points: Sequence[Point]) -> None:
        """Store them."""
        await self.turn()
        self.points.update({point.id: point for point in points})

    async def get(self, ids: Sequence[str], *, where: Condition, agreed: bool = False) -> Sequence[Point]:
        """Points by id."""
        await self.turn()
        found = [self.points[one] for one in ids if one in self.points]
        return [point for point in found if holds(where, point)]

    async def scroll(self, *, where: Condition, limit: int, start_id: str | None = None) -> Page:
        """A page in the order of ids."""
        await self.turn()
        found = [point for point in self._that(where) if start_id is None or point.id >= start_id]
        shown = tuple(Found(point.id, point.payload) for point in found[:limit])
        return Page(shown, found[limit].id if len(found) > limit else None)

    async def newest(self, *, where: Condition, limit: int) -> Sequence[Found]:
        """By ``created_at``."""
        await self.turn()
        found = sorted(self._that(where), key=lambda point: str(point.payload["created_at"]), reverse=True)
        return [Found(point.id, point.payload) for point in found[:limit]]

    async def placed(self, *, where: Condition, limit: int) -> Sequence[Placed]:
        """Not here."""
        raise NotImplementedError

    async def values(self, field: str, *, where: Condition, limit: int) -> Mapping[str, int]:
        """Counts by value."""
        await self.turn()
        counted = Counter(str(value) for point in self._that(where) for value in _values(point.payload, field))
        return dict(counted.most_common(limit))

    async def nearest(self, dense: tuple[float, ...], *, where: Condition, limit: int) -> Sequence[Found]:
        """Not here."""
        raise NotImplementedError

    async def rank(
        self, queries: Sequence[Query], *, where: Condition, corpus: Condition, limit: int
    ) -> Sequence[Sequence[Ranked]]:
        """Not here."""
        raise NotImplementedError

    async def count(self, *, where: Condition) -> int:
        """How many."""
        await self.turn()
        return len(self._that(where))

    async def delete(self, *, where: Condition) -> None:
        """Remove them."""
        await self.turn()
        for point in self._that(where):
            del self.points[point.id]

    def _that(self, where: Condition) -> list[Point]:
        return sorted((point for point in self.points.values() if holds(where, point)), key=attrgetter("id"))


@dataclass
class PlainCollections:
    """``Collections`` that several stores in one process share."""

    stored: dict[str, dict[str, Point]] = field(default_factory=dict[str, dict[str, Point]])
    in_service: list[str] = field(default_factory=list[str])
    turn: Turn = at_once

    async def names(self) -> Sequence[str]:
        """All of them."""
        await self.turn()
        return list(self.stored)

    async def serving(self) -> str | None:
        """The one put in service last."""
        return self.in_service[-1] if self.in_service else None

    async def serve(self, name: str) -> None:
        """Put it in service."""
        await self.turn()
        self.in_service.append(name)

    async def open(self, spec: CollectionSpec, name: str) -> PlainCollection:
        """Find or make it."""
        del spec
        await self.turn()
        return PlainCollection(name, self.stored.setdefault(name, {}), self.turn)

    async def drop(self, name: str) -> None:
        """Remove it."""
        await self.turn()
        del self.stored[name]

    async def archive(self, collection: Collection) -> Path:
        """Not here."""
        raise NotSupported(collection.name)

    async def close(self) -> None:
        """Nothing is held."""
