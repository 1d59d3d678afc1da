"""Keeps a run's curves beside its checkpoints, and draws them after each step: ``curves.jsonl`` and ``curves.svg``.

verl's own file of figures begins again when a run is resumed. Here a resumed run keeps the steps up to its checkpoint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final, SupportsFloat, TypeAlias

from trainer.rollout.figure import Line, Panel, svg

LOG: Final = "curves.jsonl"
FIGURE: Final = "curves.svg"
LENGTHS: Final = "memloop/reward_turns/"
"""The mean reward of rollouts by their number of conversations, which grows with the document: ``…/5-8``."""

Point: TypeAlias = tuple[int, Mapping[str, float]]
"""A step and its figures by verl's names."""

_PANELS: Final = (
    ("Reward", {"rollouts": "memloop/reward", "held out": "val-core/*"}),
    ("Reward by conversations", {"*": f"{LENGTHS}*"}),
    ("KL divergence", {"to the start": "actor/kl_loss", "to the rollouts": "actor/ppo_kl"}),
    ("Entropy", {"of a token": "actor/entropy"}),
    ("Share of clipped tokens", {"ratio": "actor/pg_clipfrac", "dual clip": "actor/pg_clipfrac_lower"}),
    ("Tokens of a reply", {"mean": "response_length/mean", "longest": "response_length/max"}),
    (
        "Memory errors, share of reading turns",
        {
            "missed": "memloop/missed",
            "forgot": "memloop/forgot",
            "took another's": "memloop/took_anothers",
            "invented": "memloop/invented",
        },
    ),
    ("Share of groups with a gradient", {"in the batch": "memloop/live_groups"}),
)
"""Titles, and the figures of each by label. A name that ends in ``*`` stands for all figures that begin with the rest;
the label ``*`` for the rest of their names."""


class Curves:
    """The curves in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._points: list[Point] = []

    def resume(self, step: int) -> None:
        """Read the steps up to ``step``; later ones were lost with the run that made them, and run again."""
        file = self._folder / LOG
        lines = file.read_text("utf-8").splitlines(keepends=True) if file.is_file() else []
        points = dict(_point(line) for line in lines if line.endswith("\n"))
        self._points = [point for point in points.items() if point[0] <= step]
        if lines:
            self._write()

    def add(self, step: int, figures: Mapping[str, object]) -> None:
        """Record a step's figures, and draw all steps. The newest step may be added again, with more figures."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._points and self._points[-1][0] == step:
            self._points.pop()
        finite = {name: value for name, each in figures.items() if math.isfinite(value := _number(each))}
        self._points.append((step, finite))
        self._write()
        _replace(self._folder / FIGURE, svg([_panel(title, lines, self._points) for title, lines in _PANELS]))

    def _write(self) -> None:
        """Write one line for each step. A run that dies meanwhile leaves the file as it was."""
        _replace(self._folder / LOG, "".join(map(_line, self._points)))


def _number(value: object) -> float:
    """Return the value as a float; nan if it is none."""
    return float(value) if isinstance(value, SupportsFloat) else math.nan


def _panel(title: str, wanted: Mapping[str, str], points: list[Point]) -> Panel:
    named = sorted({name for _, figures in points for name in figures})
    return Panel(title, [line for label, name in wanted.items() for line in _lines(label, name, named, points)])


def _lines(label: str, wanted: str, named: list[str], points: list[Point]) -> list[Line]:
    """Return the lines of the figures that a panel wants and the run has."""
    start = wanted.removesuffix("*")
    names = [name for name in named if (name.startswith(start) if start != wanted else name == wanted)]
    return [
        Line(
            name.removeprefix(start) if label == "*" else label,
            [(at, each[name]) for at, each in points if name in each],
        )
        for name in names
    ]


def _line(point: Point) -> str:
    return json.dumps({"step": point[0], "data": point[1]}) + "\n"


def _point(line: str) -> Point:
    entry = json.loads(line)
    return int(entry["step"]), entry["data"]


def _replace(file: Path, text: str) -> None:
    """Write whole files only: a viewer may read at any moment."""
    written = file.with_suffix(".part")
    written.write_text(text, "utf-8")
    written.replace(file)
