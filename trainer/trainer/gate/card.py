"""The model card of a candidate that passed: a README in the Hugging Face hub's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from memloop.wire.chat import Json
from memloop.wire.checkpoint import CheckpointRecord
from trainer.data.json_rows import DataError
from trainer.front_matter import front_matter
from trainer.gate.comparison import Comparison
from trainer.gate.held_out import HeldOut

FILE: Final = "README.md"
_MARK: Final = "<!-- written by python -m trainer gate -->"
_USES: Final = {
    "memagent": "reading documents of any length chunk by chunk into a memory of fixed size, by MemAgent's loop",
    "memreread": "reading documents chunk by chunk, and again for what is missing, by MemReread's loop",
    "memreader": "deciding what to remember of a conversation (search, add, buffer, ignore), by MemReader's loop",
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a person says of the model: its name, licence, base on the hub, the cards of its data, more limits."""

    name: str
    license: str
    base_model: str | None = None
    data_cards: Sequence[str] = ()
    limits: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ModelCard:
    """All that the card says. ``failed`` counts rows that the candidate and the incumbent did not answer at all."""

    told: Told
    record: CheckpointRecord
    held_out: HeldOut
    incumbent: str
    comparisons: Sequence[Comparison]
    failed: tuple[int, int]
    rule: str

    def text(self) -> str:
        """Front matter and body."""
        parts = (self._use(), self._training(), self._results(), self._limits())
        return f"{front_matter(self._fields())}\n{_MARK}\n\n# {self.told.name}\n\n" + "\n\n".join(parts) + "\n"

    def _fields(self) -> Json:
        metrics: list[JsonValue] = [
            {"type": each.score, "name": each.score, "value": round(each.candidate, 4)} for each in self.comparisons
        ]
        result: Json = {
            "task": {"type": "text-generation", "name": self.held_out.loop},
            "dataset": {"type": self.held_out.path.stem, "name": self.held_out.path.name},
            "metrics": metrics,
        }
        return {
            "license": self.told.license,
            "library_name": "transformers",
            "pipeline_tag": "text-generation",
            "base_model": self.told.base_model or self.record.started_from,
            "tags": ["memloop", "long-context", "memory", self.held_out.loop],
            "model-index": [{"name": self.told.name, "results": [result]}],
        }

    def _use(self) -> str:
        return (
            f"## Intended use\n\nFor {_USES[self.held_out.loop]}, with the prompts of the profile "
            f"`{self.record.profile}` and no others: they are what it was trained on."
        )

    def _training(self) -> str:
        record, by = self.record, self.record.trained_by
        rows = [("started from", record.started_from), ("step", f"{record.step:,}"), ("weights", record.dtype)]
        if by is not None:
            rows += [("recipe", by.recipe), ("objective", by.objective), ("reward", by.reward)]
            rows += [("data", file) for file in by.data]
        rows += [("data card", card) for card in self.told.data_cards]
        rows += [("SHA-256 of the weights", record.weights_sha256), ("SHA-256 of the profile", record.profile_hash)]
        return f"## Training\n\n| | |\n|---|---|\n{_lines(rows)}"

    def _results(self) -> str:
        held_out, first = self.held_out, self.comparisons[0]
        return (
            f"## Held-out results\n\n{first.rows:,} rows of `{held_out.path.name}` (SHA-256 `{held_out.sha256[:16]}`), "
            f"by the loop `{held_out.loop}` through a gateway, candidate and incumbent ({self.incumbent}) on the same "
            f"rows. A row without an answer is a wrong one: {self.failed[0]} of the candidate's, {self.failed[1]} of "
            f"the incumbent's. The rule: {self.rule}.\n\n{table(self.comparisons)}"
        )

    def _limits(self) -> str:
        limits = (
            "It was measured on the rows above alone; on other text, languages and lengths nothing is known of it.",
            "Prompts other than its profile's, a changed tool schema or another chat template make it another model.",
            *self.told.limits,
        )
        return "## Limits\n\n" + "\n".join(f"* {limit}" for limit in limits)


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as Markdown."""
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
