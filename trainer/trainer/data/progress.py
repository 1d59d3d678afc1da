"""Shows a long run's progress on stderr: a bar on a terminal, nothing otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

T = TypeVar("T")


class Progress:
    """Shows progress unless ``quiet``."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)

    def over(self, items: Iterable[T], *, total: int | None, what: str) -> Iterator[T]:
        """Yield the items while counting them."""
        with self.bars() as bars:
            yield from bars.track(items, total=total, description=what)

    def bars(self) -> Bars:
        """Create bars to be advanced by hand."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        return Bars(*columns, console=self._console, disable=not self._console.is_terminal)
