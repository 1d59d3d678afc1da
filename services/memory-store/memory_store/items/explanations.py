"""Explains the store's decisions on a version, in words for the item's history."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from pydantic import JsonValue, TypeAdapter

from memloop.wire.feedback import Verdict
from memloop.wire.history import VersionChange
from memory_store.items.conflicts import Rule

Cause: TypeAlias = (
    Rule | Verdict | Literal["overtaken", "edited", "deleted", "recovered", "imported", "feedback withdrawn"]
)


_BECAUSE: Mapping[str, str] = {
    "new fact": "no live version has the key {key!r}",
    "same fact": "the version of {key!r} that held at that time has the same value: it was confirmed",
    "known later": "the next version of {key!r} has the same value: it now holds from the earlier time on",
    "changed fact": "the key {key!r} has another value, and this one was stated last: it supersedes the other",
    "older news": "a later statement about {key!r} was known already: this one went into history",
    "interlude": "the other value of {key!r} was stated before and after: this one went into history between them",
    "near duplicate": "another key has nearly the same value, with equal numbers and negations: it was confirmed",
    "raw turn": "a turn stored verbatim, identified by text, time and write event",
    "overtaken": "another statement about {key!r} took over part of its time",
    "edited": "a client edited it",
    "deleted": "a client deleted it",
    "imported": "it came from a file",
    "recovered": "a client took its deletion back",
    "helpful": "a client called it helpful: searches raise it a little",
    "wrong": "a client called it wrong: searches leave it out",
    "outdated": "a client called it outdated: searches lower it",
    "feedback withdrawn": "a client took its feedback back",
}


_KEPT = 16


@dataclass(frozen=True, slots=True)
class Decision:
    """One change of a version, at an ingest time; the fields are those of ``VersionChange``."""

    cause: str
    at: datetime
    other: str | None = None
    similarity: float | None = None

    def in_words(self, key: str) -> VersionChange:
        """Return the decision as history shows it. ``key`` is the normalised key that was compared."""
        because = _BECAUSE.get(self.cause, "").format(key=key)
        return VersionChange(rule=self.cause, because=because, at=self.at, other=self.other, similarity=self.similarity)

    def to_json(self) -> JsonValue:
        """Return the form of a payload, without the words."""
        return {"cause": self.cause, "at": self.at.isoformat(), "other": self.other, "similarity": self.similarity}


def decisions_from(stored: JsonValue) -> tuple[Decision, ...]:
    """Decode the output of :meth:`Decision.to_json`; empty where nothing was stored."""
    return _DECISIONS.validate_python(stored or ())


def newest_decision(stored: JsonValue) -> Decision | None:
    """Decode the last of them; None where nothing was stored."""
    return decisions_from(stored[-1:])[0] if isinstance(stored, list) and stored else None


_DECISIONS = TypeAdapter(tuple[Decision, ...])


def with_one_more(decisions: tuple[Decision, ...], decision: Decision) -> tuple[Decision, ...]:
    """Append the decision; a long list keeps its first and its newest entries."""
    more = (*decisions, decision)
    return (*more[:1], *more[1:][-_KEPT:])
