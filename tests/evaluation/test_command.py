"""``memloop-evaluate`` itself: which evaluations there are, and their retrieval figures."""

import subprocess
import sys

import pytest

from evaluation.command import EVALUATIONS, main
from evaluation.retrieval.ablation import Row
from evaluation.retrieval.command import figures


@pytest.mark.parametrize("name", EVALUATIONS)
def test_every_evaluation_has_help_of_its_own(name: str) -> None:
    command = [sys.executable, "-m", "evaluation", name, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: memloop-evaluate {name}")


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), ([], 2), (["memories"], 2)])
def test_the_evaluations_are_listed(arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    shown = capsys.readouterr()
    assert left.value.code == status
    assert all(name in (shown.err if status else shown.out) for name in EVALUATIONS)


def test_the_gain_is_that_of_everything_over_rank_fusion() -> None:
    means = {"full": [88.0, 86.0], "dense": [76.0, 78.0], "bm25": [54.0, 54.0], "plain": [75.0, 76.0]}
    rows = [Row(name, by_seed, {}) for name, by_seed in means.items()]
    assert figures(rows) == {
        "recall10": 87.0,
        "recall10_dense": 77.0,
        "recall10_bm25": 54.0,
        "recall10_plain": 75.5,
        "recall10_gain_over_plain": 11.5,
    }
