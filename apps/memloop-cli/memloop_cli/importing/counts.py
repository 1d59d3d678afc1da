"""Counts an import: turns and memories in, kept, ignored, failed, and the reasons by line."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.text import Text

_SHOWN: Final = 20
_HELD: Final = 1000


@dataclass
class Counts:
    """``problems`` are (line or record, reason), of the first thousand."""

    taken: int = 0
    kept: int = 0
    ignored: int = 0
    failed: int = 0
    problems: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    first: datetime | None = None
    last: datetime | None = None

    def fail(self, number: int, reason: str, *, count: int = 1) -> None:
        """Count what failed on a line."""
        self.failed += count
        if len(self.problems) < _HELD:
            self.problems.append((number, reason))

    def saw(self, at: datetime | None) -> None:
        """Widen the span of times."""
        if at is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)

    @property
    def line(self) -> str:
        """The counts in one line."""
        return f"{self.taken:,} in, {self.kept:,} kept, {self.ignored:,} ignored, {self.failed:,} failed"

    def show(self, console: Console, *, dry_run: bool) -> None:
        """Print the counts and the first problems."""
        for number, reason in self.problems[:_SHOWN]:
            console.print(Text(f"record {number}: {reason}", style="yellow"))
        if len(self.problems) > _SHOWN:
            console.print(Text(f"and {self.failed - _SHOWN:,} more", style="yellow"))
        if self.first is not None and self.last is not None:
            console.print(Text(f"from {self.first:%Y-%m-%d} to {self.last:%Y-%m-%d}", style="dim"))
        console.print(Text(f"{self.line}{' (dry run: nothing was sent)' if dry_run else ''}", style="bold"))
