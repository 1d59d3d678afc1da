"""``make test-all`` forgets no suite, goes on after a failure, and reports it."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.all_suites import ELSEWHERE, INSIDE_TEST, ROOT, SUITES, counted, run

MAKEFILE = """\
test-one:
	@echo '=== 1 failed, 2 passed, 3 deselected in 4.05s ==='; exit 1
test-two:
	@echo '5 passed, 1 skipped in 0.20s'
"""


def test_every_test_target_of_the_makefile_is_run() -> None:
    targets = set(re.findall(r"^((?:test|lint|check)[a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets == {*SUITES, *INSIDE_TEST, *ELSEWHERE, "test-all"}


def test_a_failure_does_not_stop_the_run_and_is_its_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    assert run(["test-one", "test-two"], tmp_path) == 1
    assert capfd.readouterr().out.splitlines()[-3:] == [
        "suite                result  min:s  tests",
        "test-one             FAILED     0:00  1 failed, 2 passed",
        "test-two             passed     0:00  5 passed, 1 skipped",
    ]
    assert run(["test-two"], tmp_path) == 0


@pytest.mark.parametrize("line", ["12 passed the gate", "E  assert 3 failed in the middle", "make: 1 error"])
def test_only_the_last_line_of_a_run_is_counted(line: str) -> None:
    assert counted(line) == Counter()
