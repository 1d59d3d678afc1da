"""The figures in the README are those of the page of results."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIGURE = re.compile(r"(?<![\w.,-])\d[\d.,]*\d|(?<![\w.,-])\d(?![\w.])")


def test_every_figure_of_the_comparison_stands_among_the_results() -> None:
    comparison = (ROOT / "README.md").read_text("utf-8").partition("## Beside others")[2].partition("\n## ")[0]
    table = [line for line in comparison.splitlines() if line.startswith("|")]
    quoted = {figure for line in table for figure in FIGURE.findall(line)}
    results = set(FIGURE.findall((ROOT / "docs/benchmarks/results.md").read_text("utf-8")))
    assert len(quoted) > 10
    assert quoted - results == set()
