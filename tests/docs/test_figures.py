"""The figures in the README are those of the page of results, and the page's are those of the kept runs."""

import json
import re
from collections.abc import Callable
from functools import partial
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


def _trained(plan: str) -> str:
    """Right answers at the training length before and after GRPO, over all seeds."""
    rows = kept(f"training-{plan}")["rows"]
    shares = (
        mean(row["strict"] for row in rows if (row["policy"], row["times"]) == (policy, 1))
        for policy in ("before", "after")
    )
    return " → ".join(f"{share:.1f} %" for share in shares)


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
PLANS = ("hasty", "hasty-gspo", "hasty-dr-grpo", "two-hop-rea-grpo", "two-hop-amortised", "early")
FROM_RUNS: list[tuple[Path, Callable[[], str | list[str]]]] = [
    (README, lambda: f"{kept('long_read_full_length')['document_tokens']:,} tokens"),
    (README, lambda: f"{kept('long_read_full_length')['peak_mb_total']:.0f} MB"),
    (README, lambda: f"{_longest()} answers right"),
    (README, lambda: f"{_trained('hasty')} by {kept('training-hasty')['steps']} steps"),
    (RESULTS, lambda: f"{kept('long_read_full_length')['chunks']:,} chunks"),
    (RESULTS, lambda: f"right answer in {kept('long_read_full_length')['seconds']:.0f} s"),
    *((RESULTS, partial(_trained, plan)) for plan in PLANS),
    (RESULTS, _strategies),
    *((TRAINING, lambda plan=plan: _trained(plan).replace(" %", "")) for plan in PLANS),
]


@pytest.mark.parametrize(("page", "figure"), FROM_RUNS)
def test_a_figure_of_a_page_is_that_of_the_kept_run(page: Path, figure: Callable[[], str | list[str]]) -> None:
    shown = figure()
    text = page.read_text("utf-8")
    assert [one for one in ([shown] if isinstance(shown, str) else shown) if one not in text] == []
