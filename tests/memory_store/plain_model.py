"""What the store promises, as plainly as it can be said: lists in memory, no ids, no vectors, no files."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

DELETED_LIFE = timedelta(days=30)
RAW_LIFE = timedelta(days=30)

Owner: TypeAlias = tuple[str, str, str | None]
"""Tenant, user, agent."""
Seen: TypeAlias = tuple[str, str, int, str, str, str]
"""Key, value, version, status, valid from, valid to."""


def iso(moment: datetime | None) -> str:
    """The moment in UTC, as text; nothing for none."""
    return moment.astimezone(UTC).isoformat() if moment else ""


@dataclass(eq=False)
class Said:
    """One version: a value of a key over a stretch of event time."""

    owner: Owner
    key: str
    value: str
    start: datetime
    end: datetime | None
    confirmed: datetime
    expires: datetime | None
    status: str = "activated"
    raw: bool = False
    number: int = 1
    expires_if_recovered: datetime | None = None

    @property
    def seen(self) -> Seen:
        return self.key, self.value, self.number, self.status, iso(self.start), iso(self.end)

    def is_over(self, now: datetime) -> bool:
        return self.status == "deleted" or (self.expires is not None and self.expires <= now)

    def holds_at(self, moment: datetime) -> bool:
        return self.start <= moment and (self.end is None or moment < self.end)


@dataclass
class PlainStore:
    """All that was said, by everybody."""

    versions: list[Said] = field(default_factory=list[Said])

    def fact(self, owner: Owner, key: str) -> list[Said]:
        mine = [one for one in self.versions if (one.owner, one.key, one.raw) == (owner, key, False)]
        return sorted(mine, key=lambda one: (one.start, one.number))

    def next_number(self, owner: Owner, key: str) -> int:
        return max((one.number for one in self.fact(owner, key)), default=0) + 1

    def say(self, new: Said, now: datetime) -> Said:
        """State something new, or touch what says it."""
        new.number = self.next_number(new.owner, new.key)
        return self.state(new, now, split_number=new.number + 1)

    def state(self, new: Said, now: datetime, *, split_number: int) -> Said:
        """Put a version where it belongs; what holds its value there afterwards."""
        others = [one for one in self.fact(new.owner, new.key) if not one.is_over(now) and one.start != one.end]
        current = next((one for one in reversed(others) if one.holds_at(new.start)), None)
        following = min((one for one in others if one.start > new.start), key=lambda one: one.start, default=None)
        if current and current.value == new.value:
            return self._touch(current, new)
        if current and current.confirmed > new.start:
            self._split(current, new, split_number)
        elif following and following.value == new.value:
            self._end(current, new.start)
            following.start = new.start
            return self._touch(following, new)
        else:
            self._end(current, new.start)
            new.end = following.start if following else None
        new.status = "archived" if new.end else "activated"
        if new.end:
            new.confirmed = new.start
        self.versions.append(new)
        return new

    def _touch(self, held: Said, new: Said) -> Said:
        held.confirmed = max(held.confirmed, new.start)
        held.expires = max(held.expires, new.expires) if held.expires and new.expires else None
        return held

    def _end(self, current: Said | None, moment: datetime) -> None:
        if current:
            current.end, current.status = moment, "archived"

    def _split(self, current: Said, new: Said, number: int) -> None:
        """The current value was said again later: the new one goes in between."""
        if current.start < new.start:
            half = replace(current, end=new.start, status="archived", confirmed=current.start)
            self.versions.append(half)
            current.number = number
        new.end = current.start = current.confirmed

    def edit(self, held: Said, value: str, now: datetime) -> None:
        since = max(now, held.start)
        number = self.next_number(held.owner, held.key)
        self.versions.append(replace(held, end=since, status="archived"))
        held.number = number
        held.value, held.start, held.confirmed = value, since, max(since, held.confirmed)

    def history(self, held: Said, now: datetime) -> list[Said]:
        """What is shown of its fact: deleted versions too, but nothing after its own end."""
        fact = self.fact(held.owner, held.key)
        return [one for one in fact if one.expires is None or one.expires > now]

    def delete(self, held: Said, now: datetime) -> None:
        held.status, held.end = "deleted", held.end or max(now, held.start)
        held.expires_if_recovered = held.expires
        held.expires = min(filter(None, (held.expires, now + DELETED_LIFE)))

    def recover(self, deleted: Said, now: datetime) -> Said:
        """Say it again at its own time; what holds it afterwards: another version, if that says the same."""
        number = self.next_number(deleted.owner, deleted.key)
        self.versions.remove(deleted)
        expires = deleted.expires_if_recovered
        again = replace(deleted, end=None, status="activated", expires=expires, expires_if_recovered=None)
        if deleted.raw:
            self.versions.append(again)
            return again
        keeps = replace(again, expires=datetime.max.replace(tzinfo=now.tzinfo))
        others = [one for one in self.fact(deleted.owner, deleted.key) if not one.is_over(now)]
        before = {id(one): (one.expires, one.confirmed) for one in others}
        held = self.state(keeps, now, split_number=number)
        if held is not keeps:
            held.expires = before[id(held)][0]
            self.versions.append(deleted)
            return held
        keeps.expires = again.expires
        return keeps

    def can_recover(self, deleted: Said, now: datetime) -> bool:
        ends = [end for end in (deleted.expires, deleted.expires_if_recovered) if end]
        return all(end > now for end in ends)

    def erase(self, owner: Owner) -> int:
        gone = [one for one in self.versions if within(one.owner, owner)]
        self.versions = [one for one in self.versions if one not in gone]
        return len(gone)

    def sweep(self, now: datetime) -> bool:
        kept = [one for one in self.versions if one.expires is None or one.expires > now]
        swept = len(kept) < len(self.versions)
        self.versions = kept
        return swept

    def visible(self, owner: Owner, now: datetime) -> Iterator[Said]:
        for one in self.versions:
            if within(one.owner, owner) and not one.is_over(now):
                yield one

    def live(self, owner: Owner, now: datetime) -> list[Said]:
        return [one for one in self.visible(owner, now) if one.status == "activated"]

    def as_of(self, owner: Owner, moment: datetime, now: datetime) -> list[Said]:
        return [one for one in self.visible(owner, now) if one.holds_at(moment)]


def within(owner: Owner, wanted: Owner) -> bool:
    """Whether a namespace that leaves ids open takes in this one."""
    return owner[:2] == wanted[:2] and wanted[2] in (None, owner[2])
