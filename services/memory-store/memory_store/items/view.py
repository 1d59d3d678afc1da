"""Selects the visible memories of a namespace."""

from dataclasses import dataclass
from datetime import datetime

from memory_store.vectors.filters import AllOf, Condition, Equals, Not, TimeRange, all_of, utc


@dataclass(frozen=True, slots=True)
class View:
    """The visible memories of a namespace. Deleted and expired ones never are.

    ``as_of``: memories that held at that event time; without it ``latest_only`` shows only live versions.
    """

    latest_only: bool = True
    include_raw: bool = False
    as_of: datetime | None = None

    def condition(self, moment: datetime) -> AllOf:
        """Return the view's condition at an ingest time."""
        return all_of(
            [
                Not(TimeRange("expires_at", lte=moment)),
                self._status(),
                None if self.include_raw else Not(Equals("memory_type", "RawTurn")),
                *self._validity(),
            ]
        )

    def _status(self) -> Condition:
        if self.latest_only and self.as_of is None:
            return Equals("status", "activated")
        return Not(Equals("status", "deleted"))

    def _validity(self) -> tuple[Condition, ...]:
        if self.as_of is None:
            return ()
        begun = TimeRange("valid_from", lte=utc(self.as_of))
        not_over = Not(TimeRange("valid_to", lte=utc(self.as_of)))
        return (begun, not_over) if self.latest_only else (begun,)
