"""``make test-all`` forgets no suite, goes on after a failure, and reports it."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.all_suites import ELSEWHERE, INSIDE_OTHERS, ROOT, SUITES, Record, counted, run

MAKEFILE = """\
test-one:
	@echo '=== 1 failed, 2 passed, 3 deselected in 4.05s ==='; exit 1
test-two:
	@echo '5 passed, 1 skipped in 0.20s'
test-three:
	@echo 'arguments: $(ARGS).'
"""


def test_every_test_target_of_the_makefile_is_run() -> None:
    targets = set(re.findall(r"^((?:test|lint|check)[a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets == {*SUITES, *INSIDE_OTHERS, *ELSEWHERE, "test-all"}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    return Record(tmp_path / "record.jsonl", "c0ffee")


def test_a_failure_does_not_stop_the_run_and_is_its_result(record: Record, capfd: pytest.CaptureFixture[str]) -> None:
    folder = record.path.parent
    assert run(["test-one", "test-two"], folder, record) == 1
    assert capfd.readouterr().out.splitlines()[-3:] == [
        "suite                result  min:s  tests",
        "test-one             FAILED     0:00  1 failed, 2 passed",
        "test-two             passed     0:00  5 passed, 1 skipped",
    ]
    assert run(["test-two"], folder, record) == 0


def test_a_run_that_is_resumed_runs_what_has_not_passed_and_shows_all(
    record: Record, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = record.path.parent
    run(["test-one", "test-two"], folder, record)
    before = capfd.readouterr().out
    assert run(["test-one", "test-two"], folder, record, resume=True) == 1
    again = capfd.readouterr().out
    assert "===== make test-one" in again
    assert "===== make test-two" not in again
    assert again.splitlines()[-3:] == before.splitlines()[-3:]


def test_a_suite_does_not_get_the_arguments_of_the_whole(
    record: Record, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", " -- ARGS=--resume")  # how make passes on its command line
    run(["test-three"], record.path.parent, record)
    assert "arguments: ." in capfd.readouterr().out


@pytest.mark.parametrize("commit", ["decaf", "c0ffee-changed"])
def test_nothing_of_another_commit_or_a_changed_one_is_left_out(record: Record, commit: str) -> None:
    folder = record.path.parent
    run(["test-two"], folder, record)
    run(["test-one"], folder, Record(record.path, commit))
    assert set(Record(record.path, commit).passed()) == set()
    assert set(record.passed()) == {"test-two"}


@pytest.mark.parametrize("line", ["12 passed the gate", "E  assert 3 failed in the middle", "make: 1 error"])
def test_only_the_last_line_of_a_run_is_counted(line: str) -> None:
    assert counted(line) == Counter()
