"""Derives an add's statements, and what each does to the known versions of the same fact. No clock, no store.

A statement is a draft with its fact and its time. All versions of a fact (same namespace, type and normalised key) form
a *timeline* in event time. A version says its value over ``[valid_from, valid_to)`` and was last stated at
``confirmed_at``; the one without an end is live. A statement of a value at time t falls into exactly one rule:

    new fact       no version is known                                        insert, live
    same fact      the version at t has this value                            touch it
    known later    the next version has this value                            touch it: it holds from t on
    changed fact   t is the newest time of all                                new live version, the old one ends at t
    older news     a later version exists                                     into history, superseded already
    interlude      the version at t has another value and was stated again    into history, between the two halves
                   after t

So the live version always has the value that was stated last in event time, in whatever order statements arrive.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise, zip_longest
from typing import Literal, TypeAlias

from pydantic import JsonValue

from memloop.wire.memory import MemoryDraft, NamedTime, Namespace, Outcome, Source, StoreAdd
from memory_store.items.identity import chain_id, content_hash, draft_digest, raw_turn_id
from memory_store.times.reading import times_of
from memory_store.vectors.filters import utc

Rule: TypeAlias = Literal[
    "new fact", "same fact", "known later", "changed fact", "older news", "interlude", "near duplicate", "raw turn"
]


@dataclass(frozen=True, slots=True)
class Version:
    """One known version of a fact, in event time; ``valid_to`` None is the live one."""

    id: str
    value_hash: str
    number: int
    valid_from: datetime
    confirmed_at: datetime
    valid_to: datetime | None = None

    def covers(self, moment: datetime) -> bool:
        return self.valid_from <= moment and (self.valid_to is None or moment < self.valid_to)


@dataclass(frozen=True, slots=True)
class Placement:
    """A new version to be stored; ``valid_to`` None makes it live. ``supersedes`` is the id of the one before."""

    valid_from: datetime
    valid_to: datetime | None = None
    supersedes: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """New times for a stored version. None leaves a time as it is; a version that gets an end is archived."""

    id: str
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    confirmed_at: datetime | None = None
    after_new: bool = False
    """The version now supersedes the placed one."""
    keeps_first_half_until: datetime | None = None
    """Store a copy of the version as it was, ending at this time."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The effect of a statement: touch ``touched`` or store ``placed``, and apply the changes. ``rule`` names the
    reason.
    """

    outcome: Outcome
    rule: Rule
    touched: str | None = None
    placed: Placement | None = None
    changes: tuple[Change, ...] = ()
    similarity: float | None = None


def resolve(value_hash: str, stated_at: datetime, versions: Sequence[Version]) -> Resolution:
    """Apply the first rule that fits. ``versions`` are the fact's versions that are not deleted, in any order."""
    timeline = _timeline(versions)
    before = [version for version in timeline if version.valid_from <= stated_at]
    after = [version for version in timeline if version.valid_from > stated_at]
    current = next((version for version in reversed(before) if version.covers(stated_at)), None)
    if current and current.value_hash == value_hash:
        confirmed = Change(current.id, confirmed_at=max(current.confirmed_at, stated_at))
        return Resolution("touched", "same fact", touched=current.id, changes=(confirmed,))
    if current and current.confirmed_at > stated_at:
        placed = Placement(stated_at, valid_to=current.confirmed_at)
        split = Change(
            current.id,
            valid_from=current.confirmed_at,
            after_new=True,
            keeps_first_half_until=stated_at if current.valid_from < stated_at else None,
        )
        return Resolution("superseded", "interlude", placed=placed, changes=(split,))
    following = after[0] if after else None
    if following and following.value_hash == value_hash:
        earlier = Change(following.id, valid_from=stated_at)
        changes = (*_ending(current, stated_at), earlier)
        return Resolution("touched", "known later", touched=following.id, changes=changes)
    if following:
        placed = Placement(stated_at, valid_to=following.valid_from, supersedes=current.id if current else None)
        changes = (*_ending(current, stated_at), Change(following.id, after_new=True))
        return Resolution("superseded", "older news", placed=placed, changes=changes)
    if not current:
        return Resolution("inserted", "new fact", placed=Placement(stated_at))
    placed = Placement(stated_at, supersedes=current.id)
    return Resolution("superseded", "changed fact", placed=placed, changes=(Change(current.id, valid_to=stated_at),))


def repair(versions: Sequence[Version]) -> tuple[Change, ...]:
    """Return ends for versions that a later one should have ended.

    Two stores that raced past the fence, or a cluster that lost half of a write, can leave two live versions.
    """
    followed = pairwise(_timeline(versions))
    return tuple(Change(one.id, valid_to=after.valid_from) for one, after in followed if one.valid_to is None)


def _timeline(versions: Sequence[Version]) -> list[Version]:
    """Sort by event time, without versions of no duration: they held at no time."""
    holding = [version for version in versions if version.valid_to is None or version.valid_from < version.valid_to]
    return sorted(holding, key=lambda version: (version.valid_from, version.number))


def _ending(current: Version | None, stated_at: datetime) -> tuple[Change, ...]:
    return (Change(current.id, valid_to=stated_at),) if current else ()


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """``raw_turn_life``: how long a raw turn is kept after it was written.

    ``near_duplicate_similarity``: cosine from which a memory under another key counts as the same statement, None
    for never. Measured with all-MiniLM-L6-v2: "Tom has 2 cats" and "Tom has 3 cats" are 0.98 alike, "Bob is (not)
    vegetarian" 0.97, true paraphrases 0.93 to 0.98. No threshold parts them, so the rule is off by default, and with
    it on numbers and negations must agree as well.
    """

    raw_turn_life: timedelta = timedelta(days=30)
    near_duplicate_similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """A draft and the fact that it states. ``stated_at`` is event time, ``written_at`` ingest time, both UTC.

    ``write`` names the statement inside its event; None without an event id. ``times`` are those that the draft's text
    names, in the zone of its timestamp's offset.
    """

    draft: MemoryDraft
    namespace: Namespace
    value_hash: str
    chain: str
    write: str | None
    stated_at: datetime
    written_at: datetime
    sources: tuple[Source, ...] = ()
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    expires_at: datetime | None = None
    times: tuple[NamedTime, ...] = ()

    @property
    def is_raw(self) -> bool:
        """Whether the draft is a verbatim turn."""
        return self.draft.memory_type == "RawTurn"


def statements_of(
    add: StoreAdd, *, written_at: datetime, policy: WritePolicy, arrivals: Iterator[int]
) -> list[Statement]:
    """Returns the statements of an add in the order of its drafts.

    Each is written some microseconds after ``written_at``, its number in ``arrivals``, so that their order is kept.
    """
    said_at = utc(add.timestamp) if add.timestamp else None
    seen: Counter[str] = Counter()
    statements: list[Statement] = []
    for (draft, own_end), arrival in zip(zip_longest(add.drafts, add.ends), arrivals, strict=False):
        if draft is None:
            break
        is_raw = draft.memory_type == "RawTurn"
        # The earlier of the draft's own end and the add's, which for a raw turn is that of its life
        common = written_at + policy.raw_turn_life if is_raw and add.expires_at is None else add.expires_at
        end = min((utc(end) for end in (own_end, common) if end is not None), default=None)
        write = None
        if add.event_id is not None:  # the same statement twice in one event is two writes
            digest = draft_digest(draft)
            write = f"{add.event_id}:{digest}:{seen[digest]}"
            seen[digest] += 1
        sources = (draft.source,) if draft.source else add.sources
        spoken_at = (draft.source.timestamp if draft.source else None) or add.timestamp or written_at
        # A raw turn is a fact of its own, and other drafts share a fact by their key
        chain = (
            raw_turn_id(add.namespace, draft, said_at, write or "")
            if is_raw
            else chain_id(add.namespace, draft.memory_type, draft.key, draft.value)
        )
        times = times_of(draft.value, spoken_at, sources)
        statements.append(
            Statement(
                draft,
                add.namespace,
                content_hash(draft.value, times),
                chain,
                write,
                stated_at=said_at or written_at,
                written_at=written_at + timedelta(microseconds=arrival),
                sources=sources,
                metadata=add.metadata,
                expires_at=end,
                times=times,
            )
        )
    return statements
