"""A journal continues its own run's file, and leaves every other file as it is."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from trainer.data.journal import Journal
from trainer.data.json_rows import DataError

RUN: dict[str, object] = {"run": 1, "of": "tests"}


def journal(path: Path) -> Journal[str]:
    return Journal(path, RUN, records=TypeAdapter(str), key_of=lambda record: record)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"my": "own file, without a newline at its end"}', id="an object without a newline"),
        pytest.param("notes", id="a word without a newline"),
        pytest.param('["a list"]\n', id="a list"),
        pytest.param("7\n", id="a number"),
        pytest.param("\n\n", id="blank lines"),
        pytest.param('{"run": 1, "of": "others"}\n"a"\n"b', id="another run"),
        pytest.param('{"run": 1, "of": "tests"}\n7\n"b', id="a record of another form"),
    ],
)
def test_a_file_that_is_not_the_runs_own_is_refused_and_stays_as_it_is(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=r"results\.jsonl"):
        journal(path)
    assert path.read_text() == text


@pytest.mark.parametrize("left", ["", '{"run": 1, "o'], ids=["nothing", "half of its first line"])
def test_a_run_that_was_killed_before_its_first_line_begins_again(left: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(left)
    with journal(path) as began:
        began.append("a")
    assert path.read_text() == '{"run": 1, "of": "tests"}\n"a"\n'


def test_an_incomplete_last_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"run": 1, "of": "tests"}\n"a"\n"b')
    with journal(path) as resumed:
        resumed.append("c")
        assert resumed.records == ("a", "c")
    assert path.read_text() == '{"run": 1, "of": "tests"}\n"a"\n"c"\n'
