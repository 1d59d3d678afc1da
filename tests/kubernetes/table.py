"""The table that a run prints: one row for each thing that was tried."""

from dataclasses import dataclass, field


@dataclass
class Table:
    """Rows of what was tried, its figure, and the seconds it took."""

    rows: list[tuple[str, str, float]] = field(default_factory=list[tuple[str, str, float]])

    def add(self, tried: str, figure: str, seconds: float) -> None:
        """Add a row."""
        self.rows.append((tried, figure, seconds))

    def text(self) -> str:
        """The table as Markdown, aligned."""
        lines = [("tried", "figure", "seconds"), *((name, figure, f"{s:.1f}") for name, figure, s in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        shown = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
        rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
        return "\n".join([shown[0], rule, *shown[1:]])
