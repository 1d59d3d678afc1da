"""Two runs compared question by question: figures that can be worked out by hand, the files, and what is refused."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from evaluation.compare.command import differences_of, main, table
from evaluation.compare.runs import Measure, read_run
from evaluation.memory.records import ENTRIES, Answered, AnyEntry, Graded, Recalled
from evaluation.memory.scores import Prices, row_score
from memloop.scoring.comparison import compare
from trainer.data.json_rows import DataError

ABOUT = {"format": "locomo", "sha256": "abc", "model": "m"}


def written(folder: Path, records: Sequence[AnyEntry], **about: object) -> Path:
    """A run's folder as ``memloop-evaluate memory`` leaves it."""
    folder.mkdir(parents=True)
    lines = [ABOUT | about, *(ENTRIES.dump_python(record) for record in records)]
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


def recalled(question: int, share: float, category: str = "single") -> Recalled:
    return Recalled("c", str(question), (category,), {"10": share}, {"10": share})


def answered(question: int, *, right: bool, seed: int = 0) -> Answered:
    return Answered("ours", "c", str(question), seed, ("single",), ("tea",), "tea", "correct" if right else "wrong")


def test_each_category_is_compared_on_the_questions_of_both_runs(tmp_path: Path) -> None:
    a = written(tmp_path / "a", [recalled(1, 0.0), recalled(2, 0.5, "multi"), recalled(3, 1.0), recalled(4, 1.0)])
    b = written(tmp_path / "b", [recalled(1, 1.0), recalled(2, 1.0, "multi"), recalled(3, 0.5), recalled(9, 1.0)])

    every, multi, single = differences_of(read_run(a), read_run(b))

    assert every.measure == Measure("recall@10", "all")
    assert (every.found.rows, every.only_a, every.only_b) == (3, 1, 1)
    assert (every.found.incumbent, every.found.candidate) == pytest.approx((0.5, 2.5 / 3))
    assert every.found.gain == pytest.approx(1 / 3)
    assert (every.found.better, every.found.worse) == (2, 1)
    assert (multi.found.rows, multi.found.gain) == (1, pytest.approx(0.5))
    assert (single.found.rows, single.found.gain) == (2, pytest.approx(0.25))


def test_a_question_asked_with_several_seeds_counts_once(tmp_path: Path) -> None:
    a = written(tmp_path / "a", [answered(1, right=True), answered(1, right=False, seed=1)])
    b = written(tmp_path / "b", [answered(1, right=True), answered(1, right=True, seed=1)])

    found = {each.measure: each.found for each in differences_of(read_run(a), read_run(b))}

    accuracy = found[Measure("accuracy, ours", "all")]
    assert (accuracy.rows, accuracy.incumbent, accuracy.candidate) == (1, 0.5, 1.0)


def test_an_answer_that_was_judged_thrice_counts_by_all_of_its_verdicts_as_in_the_scorecard(tmp_path: Path) -> None:
    judged = replace(answered(1, right=False), judgements=("wrong", "correct", "correct"))
    unjudged = replace(answered(2, right=True), error="Timeout: too late")

    (accuracy,) = (
        questions
        for measure, questions in read_run(written(tmp_path / "a", [judged, unjudged])).scores.items()
        if measure == Measure("accuracy, ours", "all")
    )

    assert accuracy == {("c", "1"): pytest.approx(2 / 3), ("c", "2"): 0.0}
    assert row_score("ours", [judged, unjudged], [], Prices()).accuracy.share == pytest.approx(fmean(accuracy.values()))


@pytest.mark.parametrize(
    "fields",
    [{"categories": ["multi-session", "abstention"]}, {"category": "multi-session + abstention"}],
    ids=["now", "before categories were a list"],
)
def test_a_question_counts_in_each_of_its_categories(tmp_path: Path, fields: dict[str, object]) -> None:
    record = ENTRIES.dump_python(answered(1, right=True))
    del record["categories"]
    (tmp_path / "results.jsonl").write_text(f"{json.dumps(ABOUT)}\n{json.dumps(record | fields)}\n", "utf-8")

    categories = {measure.category for measure in read_run(tmp_path).scores if measure.score == "accuracy, ours"}

    assert categories == {"all", "multi-session", "abstention"}


def test_memory_points_are_compared_by_kind(tmp_path: Path) -> None:
    def point(number: int, grade: Any, **fields: Any) -> Graded:
        return Graded("ours", "c", "s", str(number), 1.0, grade, **fields)

    new, change = point(1, "full", type="event"), point(2, None, is_update=True, update="wrong", type="persona")
    better = point(2, None, is_update=True, update="correct", type="persona")
    a = written(tmp_path / "a", [new, change, point(3, "missed", interferes=True)])
    b = written(tmp_path / "b", [point(1, "half", type="event"), better, point(3, "half", interferes=True)])

    found = {each.measure: each.found.gain for each in differences_of(read_run(a), read_run(b))}

    assert found[Measure("extraction, ours", "event")] == -0.5
    assert found[Measure("updates, ours", "persona")] == 1.0
    assert found[Measure("false memory resistance, ours", "all")] == -1.0


def test_an_update_that_could_not_be_judged_is_compared_as_an_update(tmp_path: Path) -> None:
    unjudged = Graded("ours", "c", "s", "1", 1.0, is_update=True, as_update=True)

    scores = read_run(written(tmp_path / "a", [unjudged, replace(unjudged, point="2", error="Timeout: late")])).scores

    assert {measure.score for measure in scores} == {"updates, ours"}
    assert set(scores[Measure("updates, ours", "all")].values()) == {0.0}


def test_a_ruler_run_is_compared_by_task_and_size(tmp_path: Path) -> None:
    def run(name: str, *answers: str) -> Path:
        file = tmp_path / f"{name}.jsonl"
        rows = [
            {"task": "hotpotqa", "size": 50, "index": at, "digest": "d", "seed": 0, "golds": ["tea"], "engine": "e"}
            | {"answer": answer}
            for at, answer in enumerate(answers)
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in [{"reader": "loop"}, *rows]), "utf-8")
        return file

    found = {
        each.measure: each.found
        for each in differences_of(read_run(run("a", "x", "y")), read_run(run("b", "tea", "y")))
    }

    scores = [measure for measure in found if measure.category == "hotpotqa, 50"]
    assert scores
    assert all(found[measure].gain == 0.5 for measure in scores)


def test_a_difference_outside_its_interval_has_a_star(tmp_path: Path) -> None:
    a = written(tmp_path / "a", [recalled(number, 0.0) for number in range(40)])
    b = written(tmp_path / "b", [recalled(number, float(number < 30)) for number in range(40)])
    same = differences_of(read_run(a), read_run(a))
    other = differences_of(read_run(a), read_run(b))

    assert "*" not in table(same)
    assert "| recall@10 | all | 40 | 0.0 | 75.0 | +75.0 [" in table(other)
    assert table(other).splitlines()[2].count("*") == 1
    assert other[0].found == compare("recall@10", [(float(number < 30), 0.0) for number in range(40)])


def test_the_command_leaves_json_and_a_figure_and_prints_a_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = written(tmp_path / "a", [recalled(1, 0.0)], model="old")
    b = written(tmp_path / "b", [recalled(1, 1.0)], model="new")
    main([str(a), str(b), "--out", str(tmp_path / "out")])
    first = (tmp_path / "out" / "comparison.svg").read_bytes()
    main([str(a), str(b), "--out", str(tmp_path / "out")])

    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    kept = json.loads((tmp_path / "out" / "comparison.json").read_text("utf-8"))
    assert {**kept, "evaluation": "compare"} == last
    assert (kept["a"]["model"], kept["b"]["model"]) == ("old", "new")
    assert kept["differences"][0]["gain"] == 1.0
    assert b"<svg" in first
    assert (tmp_path / "out" / "comparison.svg").read_bytes() == first


@pytest.mark.parametrize("about", [{"sha256": "other"}, {"format": "halumem"}])
def test_runs_of_different_data_are_refused(tmp_path: Path, about: dict[str, str]) -> None:
    a, b = written(tmp_path / "a", [recalled(1, 0.0)]), written(tmp_path / "b", [recalled(1, 0.0)], **about)
    with pytest.raises(DataError, match="different data"):
        differences_of(read_run(a), read_run(b))


def test_a_run_cut_short_in_a_line_is_read_up_to_it(tmp_path: Path) -> None:
    a = written(tmp_path / "a", [recalled(1, 1.0)])
    with (a / "results.jsonl").open("a") as file:
        file.write('{"kind": "recall", "conv')

    assert list(read_run(a).scores[Measure("recall@10", "all")].values()) == [1.0]


@pytest.mark.parametrize("text", ["", "no json\n", "[]\n", '{"format": "locomo"}\n{"kind": "unknown"}\n'])
def test_a_file_that_is_no_run_ends_the_command_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(text, "utf-8")
    with pytest.raises(SystemExit) as ended:
        main([str(file), str(file)])

    assert ended.value.code == 2
    assert str(file) in capsys.readouterr().err


def test_a_missing_run_ends_the_command_with_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path / "gone"), str(tmp_path)])

    assert "gone" in capsys.readouterr().err
