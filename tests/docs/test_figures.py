"""The figures in the README are those of the page of results, and the page's are those of the kept runs."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FIGURE = re.compile(r"(?<![\w.,-])\d[\d.,]*\d|(?<![\w.,-])\d(?![\w.])")


def test_every_figure_of_the_comparison_stands_among_the_results() -> None:
    comparison = (ROOT / "README.md").read_text("utf-8").partition("## Beside others")[2].partition("\n## ")[0]
    table = [line for line in comparison.splitlines() if line.startswith("|")]
    quoted = {figure for line in table for figure in FIGURE.findall(line)}
    results = set(FIGURE.findall((ROOT / "docs/benchmarks/results.md").read_text("utf-8")))
    assert len(quoted) > 10
    assert quoted - results == set()


def kept(name: str) -> dict[str, Any]:
    """A run that `make bench-…` wrote with `--keep`."""
    return json.loads((ROOT / f"benchmarks/results/{name}.json").read_text("utf-8"))


def _early(policy: str) -> str:
    rows = [row for row in kept("training-early")["rows"] if (row["policy"], row["times"]) == (policy, 1)]
    return f"{mean(row['strict'] for row in rows):.1f} %"


def _longest() -> str:
    row = max(kept("long_read_lengths")["lengths"], key=lambda row: row["document_tokens"])
    assert row["document_tokens"] == 3_500_000
    return f"{row['reads'] * row['exact_match']:.0f} of {row['reads']}"


def _strategies() -> list[str]:
    """The rows of the page's table, but for the reads' numbers and intervals."""
    ways = kept("long_read_strategies")["ways"]
    return [
        f"{way['calls']:g} | {way['tokens']:,} | {way['seconds']:.2f} |" for way in ways if way["seconds"] is not None
    ]


README = ROOT / "README.md"
RESULTS = ROOT / "docs/benchmarks/results.md"
TRAINING = ROOT / "docs/training-results.md"
FROM_RUNS: list[tuple[Path, Callable[[], str | list[str]]]] = [
    (README, lambda: f"{kept('long_read_full_length')['document_tokens']:,} tokens"),
    (README, lambda: f"{kept('long_read_full_length')['peak_mb_total']:.0f} MB"),
    (README, lambda: f"{_longest()} answers right"),
    (README, lambda: f"{_early('before')} → {_early('after')} by {kept('training-early')['steps']} steps"),
    (RESULTS, lambda: f"{kept('long_read_full_length')['chunks']:,} chunks"),
    (RESULTS, lambda: f"right answer in {kept('long_read_full_length')['seconds']:.0f} s"),
    (RESULTS, lambda: f"{_early('before')} → {_early('after')}"),
    (RESULTS, _strategies),
    (TRAINING, lambda: f"from {_early('before')} to {_early('after')}"),
]


@pytest.mark.parametrize(("page", "figure"), FROM_RUNS)
def test_a_figure_of_a_page_is_that_of_the_kept_run(page: Path, figure: Callable[[], str | list[str]]) -> None:
    shown = figure()
    text = page.read_text("utf-8")
    assert [one for one in ([shown] if isinstance(shown, str) else shown) if one not in text] == []
