"""``memloop-evaluate compare A B``: what run B gained or lost against run A, question by question.

A and B are folders of ``memloop-evaluate memory`` or ``ruler``. Only questions that both runs have are compared. Each
difference has a 95 % interval: the paired bootstrap, widened where few questions differ. The last line is one JSON
object.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from evaluation.compare.figure import save_figure
from evaluation.compare.runs import Measure, Run, read_run
from memloop.scoring.comparison import Comparison, compare
from trainer.data.json_rows import DataError


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure in both runs; in ``found`` B is the candidate. ``only_a`` and ``only_b`` questions were left out."""

    measure: Measure
    found: Comparison
    only_a: int
    only_b: int


def main(arguments: Sequence[str]) -> None:
    """Compare, write JSON and figure, print table and last line. Exits with 2 when the runs cannot be compared."""
    options = _parser().parse_args(arguments)
    try:
        a, b = read_run(options.a), read_run(options.b)
        differences = differences_of(a, b)
    except DataError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    options.out.mkdir(parents=True, exist_ok=True)
    found = as_json(a, b, differences)
    (options.out / "comparison.json").write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n")
    save_figure([(_title(each.measure), each.found) for each in differences], options.out / "comparison.svg")
    print(table(differences))
    print(orjson.dumps({"evaluation": "compare", **found}).decode())


def differences_of(a: Run, b: Run) -> list[Difference]:
    """Compare all measures that both runs have, ``all`` first. Raises DataError if the runs are of different data."""
    if a.about.get("sha256") != b.about.get("sha256") or a.about.get("format") != b.about.get("format"):
        raise DataError("the runs are of different data: their questions are not the same")
    both = [measure for measure in a.scores if measure in b.scores and a.scores[measure].keys() & b.scores[measure]]
    if not both:
        raise DataError("the runs have no question in common")
    both.sort(key=lambda measure: (measure.score, measure.category != "all", measure.category))
    return [_difference(measure, a, b) for measure in both]


def _difference(measure: Measure, a: Run, b: Run) -> Difference:
    of_a, of_b = a.scores[measure], b.scores[measure]
    common = [question for question in of_a if question in of_b]
    found = compare(measure.score, [(of_b[question], of_a[question]) for question in common])
    return Difference(measure, found, len(of_a) - len(common), len(of_b) - len(common))


def as_json(a: Run, b: Run, differences: Sequence[Difference]) -> dict[str, Any]:
    """Return both descriptions and every difference."""
    return {
        "a": dict(a.about),
        "b": dict(b.about),
        "differences": [
            {
                "category": each.measure.category,
                **{_NAMES.get(name, name): value for name, value in asdict(each.found).items()},
                "only_a": each.only_a,
                "only_b": each.only_b,
            }
            for each in differences
        ],
    }


_NAMES = {"rows": "questions", "candidate": "b", "candidate_interval": "b_interval"} | {
    "incumbent": "a",
    "incumbent_interval": "a_interval",
}


def table(differences: Sequence[Difference]) -> str:
    """Render the differences in Markdown, in percent; a star marks those whose interval excludes 0."""
    head = ("score", "category", "questions", "A", "B", "B − A [95 %]", "better / worse", "not in both")
    lines = [" | ".join(_cells(each)) for each in differences]
    return "\n".join(f"| {line} |" for line in (" | ".join(head), " | ".join(["---"] * len(head)), *lines))


def _cells(each: Difference) -> Sequence[str]:
    found = each.found
    low, high = found.gain_interval
    star = " *" if low > 0 or high < 0 else ""
    gain = f"{100 * found.gain:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]{star}"
    return (
        *(each.measure.score, each.measure.category, f"{found.rows}"),
        *(f"{100 * found.incumbent:.1f}", f"{100 * found.candidate:.1f}", gain),
        *(f"{found.better} / {found.worse}", f"{each.only_a + each.only_b}"),
    )


def _title(measure: Measure) -> str:
    return f"{measure.score}: {measure.category}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memloop-evaluate compare", description=__doc__)
    parser.add_argument("a", type=Path, metavar="A", help="folder or results.jsonl of the earlier run")
    parser.add_argument("b", type=Path, metavar="B", help="the same of the later one")
    parser.add_argument(
        "--out", type=Path, default=Path(".memloop/evaluate-compare"), help="folder of comparison.json and .svg"
    )
    return parser
