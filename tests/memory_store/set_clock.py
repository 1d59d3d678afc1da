"""A clock that a test moves."""

from datetime import UTC, datetime, timedelta


class SetClock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 6, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def pass_days(self, days: float) -> None:
        self.time += timedelta(days=days)
