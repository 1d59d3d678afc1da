"""``memloop-evaluate`` itself: which evaluations there are, and their retrieval figures."""

import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.command import EVALUATIONS, main
from evaluation.retrieval.ablation import Row
from evaluation.retrieval.command import figures


@pytest.mark.parametrize("name", EVALUATIONS)
def test_every_evaluation_has_help_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    shown = capsys.readouterr()
    assert (left.value.code, shown.err) == (0, "")
    assert shown.out.startswith(f"usage: memloop-evaluate {name}")


def test_the_evaluations_are_a_module_that_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "evaluation", "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), ([], 2), (["memories"], 2)])
def test_the_evaluations_are_listed(arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    shown = capsys.readouterr()
    assert left.value.code == status
    assert all(name in (shown.err if status else shown.out) for name in EVALUATIONS)


def test_a_file_that_cannot_be_read_is_named_and_no_resuming_is_promised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.json"
    file.write_text('[{"a": 1}]')

    with pytest.raises(SystemExit) as left:
        main(["memory", "--format", "locomo", "--data", str(file), "--out", str(tmp_path / "out")])

    assert left.value.code == 2
    assert capsys.readouterr().err == f"{file}, line 1: sample_id: Field required; conversation: Field required\n"


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
