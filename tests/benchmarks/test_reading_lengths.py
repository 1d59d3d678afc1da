"""What the benchmark of document lengths tells: its own figures, or those of the run that was kept."""

from benchmarks.kept import Cells
from benchmarks.long_read_strategies.measure import PLAIN, Row
from benchmarks.long_read_strategies.results import LONG, SHORT, headline
from trainer.tiny.evaluate import Score


def row(tokens: int, *, right: int, total: int) -> Row:
    return Row(PLAIN.name, tokens, Score(PLAIN.name, right, total), calls=10.0, call_tokens=100.0)


def cells(*, short_right: int, long_right: int) -> list[Cells]:
    return [row(SHORT, right=short_right, total=100).cells(), row(LONG, right=long_right, total=20).cells()]


KEPT = {"date": "2026-01-01", "machine": "a machine", "lengths": cells(short_right=100, long_right=19)}


def test_a_run_of_both_lengths_reports_its_own_drop_with_an_interval() -> None:
    found = headline(cells(short_right=90, long_right=16), KEPT)
    assert (found["em_8k"], found["em_3500k"], found["drop_8k_to_3500k_points"]) == (0.9, 0.8, 10.0)
    assert found["drop_8k_to_3500k_interval"] == [-4.06, 32.06]
    assert "from_kept" not in found


def test_a_run_without_the_far_length_reports_the_kept_runs_drop_and_names_it() -> None:
    found = headline(cells(short_right=90, long_right=16)[:1], KEPT)
    assert (found["em_8k"], found["em_3500k"], found["drop_8k_to_3500k_points"]) == (1.0, 0.95, 5.0)
    assert found["from_kept"] == ["em_8k", "em_3500k"]
    assert found["kept"] == {
        "file": "benchmarks/results/long_read_lengths.json",
        "date": "2026-01-01",
        "machine": "a machine",
    }


def test_without_a_kept_run_the_figures_that_are_missing_are_null() -> None:
    found = headline(cells(short_right=90, long_right=16)[:1], {})
    assert (found["em_8k"], found["em_3500k"], found["drop_8k_to_3500k_points"]) == (0.9, None, None)


def test_rows_of_two_cores_are_one_row_of_all_their_documents() -> None:
    few = Row(PLAIN.name, SHORT, Score(PLAIN.name, 1, 1, failed=0), calls=40.0, call_tokens=400.0, seconds=1.0)
    many = Row(PLAIN.name, SHORT, Score(PLAIN.name, 1, 3, failed=1), calls=20.0, call_tokens=200.0)
    both = few + many
    assert both == Row(PLAIN.name, SHORT, Score(PLAIN.name, 2, 4, failed=1), calls=25.0, call_tokens=250.0)
