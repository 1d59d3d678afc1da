"""Writes the model card of a candidate that passed: a README in the Hugging Face hub's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from memloop.scoring.comparison import Comparison
from memloop.wire.chat import Json
from memloop.wire.checkpoint import CheckpointRecord
from trainer.data.json_rows import DataError
from trainer.front_matter import front_matter
from trainer.gate.report import Report

FILE: Final = "README.md"
_MARK: Final = "<!-- written by python -m trainer gate -->"
_USES: Final = {
    "memagent": "to read documents of any length chunk by chunk into a memory of fixed size, by MemAgent's loop",
    "memreread": "to read documents chunk by chunk, and again for what is missing, by MemReread's loop",
    "memreader": "to decide what to remember of a conversation (search, add, buffer, ignore), by MemReader's loop",
}


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Information from a person: the model's name, licence, base on the hub, the cards of its data, more limits."""

    name: str
    license: str
    base_model: str | None = None
    data_cards: Sequence[str] = ()
    limits: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The content of the card; ``reports`` are those of the gates that the candidate passed, one per loop."""

    facts: CardFacts
    record: CheckpointRecord
    reports: Sequence[Report]

    def text(self) -> str:
        """Render front matter and body."""
        parts = [self._use(), self._training(), "## Held-out results", *map(_results, self.reports), self._limits()]
        return f"{front_matter(self._fields())}\n{_MARK}\n\n# {self.facts.name}\n\n" + "\n\n".join(parts) + "\n"

    def _fields(self) -> Json:
        return {
            "license": self.facts.license,
            "library_name": "transformers",
            "pipeline_tag": "text-generation",
            "base_model": self.facts.base_model or self.record.started_from,
            "tags": ["memloop", "long-context", "memory", *(report.loop for report in self.reports)],
            "model-index": [{"name": self.facts.name, "results": [*map(_result, self.reports)]}],
        }

    def _use(self) -> str:
        uses = "\n".join(f"* {_USES[report.loop]}" for report in self.reports)
        return f"## Intended use\n\n{uses}\n\nOnly with the prompts of the profile `{self.record.profile}`."

    def _training(self) -> str:
        record, by = self.record, self.record.trained_by
        rows = [("started from", record.started_from), ("step", f"{record.step:,}"), ("weights", record.dtype)]
        if by is not None:
            rows += [("recipe", by.recipe), ("objective", by.objective), ("reward", by.reward)]
            rows += [("data", file) for file in by.data]
        rows += [("data card", card) for card in self.facts.data_cards]
        rows += [("SHA-256 of the weights", record.weights_sha256), ("SHA-256 of the profile", record.profile_hash)]
        return f"## Training\n\n| | |\n|---|---|\n{_lines(rows)}"

    def _limits(self) -> str:
        limits = (
            "It was measured only on the rows above; its quality on other text, languages and lengths is unknown.",
            "Other prompts than its profile's, a changed tool schema or another chat template make it another model.",
            *self.facts.limits,
        )
        return "## Limits\n\n" + "\n".join(f"* {limit}" for limit in limits)


def _results(report: Report) -> str:
    mine, theirs = report.failed
    return (
        f"### {report.loop}\n\n{report.comparisons[0].rows:,} rows of `{report.held_out}` (SHA-256 "
        f"`{report.held_out_sha256[:16]}`) through a gateway, the incumbent ({report.incumbent}) on the same rows. A "
        f"row without an answer is a wrong one: {mine} of the candidate's, {theirs} of the incumbent's. It passed "
        f"because {report.rule}.\n\n{table(report.comparisons)}"
    )


def _result(report: Report) -> Json:
    metrics: list[JsonValue] = [
        {"type": each.score, "name": each.score, "value": round(each.candidate, 4)} for each in report.comparisons
    ]
    return {
        "task": {"type": "text-generation", "name": report.loop},
        "dataset": {"type": Path(report.held_out).stem, "name": report.held_out},
        "metrics": metrics,
    }


def table(comparisons: Sequence[Comparison]) -> str:
    """Format the comparisons as a Markdown table."""
    head = "| score | candidate | 95 % | incumbent | 95 % | gain | 95 % | better / worse rows |\n|" + "---|" * 8
    return "\n".join([head, *map(_row, comparisons)])


def check_may_write(folder: Path) -> None:
    """Raise DataError when the folder has a README that the gate did not write."""
    file = folder / FILE
    if file.is_file() and _MARK not in file.read_text("utf-8", "replace"):
        raise DataError(f"{file} is not the gate's, and would be overwritten: move it away")


def _row(each: Comparison) -> str:
    cells = (
        each.score,
        f"{each.candidate:.3f}",
        _interval(each.candidate_interval),
        f"{each.incumbent:.3f}",
        _interval(each.incumbent_interval),
        f"{each.gain:+.3f}",
        _interval(each.gain_interval, sign="+"),
        f"{each.better} / {each.worse}",
    )
    return f"| {' | '.join(cells)} |"


def _interval(ends: tuple[float, float], *, sign: str = "") -> str:
    return f"{ends[0]:{sign}.3f} to {ends[1]:{sign}.3f}"


def _lines(rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"| {name} | {value} |" for name, value in rows)
