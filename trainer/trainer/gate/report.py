"""A gate's findings as a file: the input of the model card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from memloop.scoring.comparison import Comparison
from trainer.data.json_rows import DataError
from trainer.data.rows import AgentName


@dataclass(frozen=True, slots=True)
class Report:
    """One loop's measurement. ``held_out`` is the file's name, hashes are SHA-256; ``rule`` and ``against`` are words.

    ``failed`` counts the rows without an answer from the candidate and from the incumbent.
    """

    loop: AgentName
    held_out: str
    held_out_sha256: str
    weights_sha256: str
    incumbent: str
    rule: str
    against: Sequence[str]
    failed: tuple[int, int]
    comparisons: Sequence[Comparison]

    def write(self, path: Path) -> None:
        """Write the report as JSON."""
        path.write_bytes(_REPORT.dump_json(self, indent=2) + b"\n")


_REPORT: Final = TypeAdapter(Report)


def file_of(folder: Path, loop: AgentName) -> Path:
    """Return the path of the report in a candidate's folder."""
    return folder / f"gate-{loop}.json"


def reports_in(folder: Path, weights_sha256: str) -> list[Report]:
    """Return the reports of the gates that these weights passed, by loop. Raises DataError for an invalid file."""
    found: list[Report] = []
    for path in sorted(folder.glob("gate-*.json")):
        try:
            found.append(_REPORT.validate_json(path.read_bytes()))
        except ValidationError as error:
            raise DataError(f"{path} is not a gate report: move it away") from error
    return [report for report in found if report.weights_sha256 == weights_sha256]
