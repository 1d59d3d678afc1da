"""What the rows of ``make test-hostile`` are compared with."""

from dataclasses import replace

import pytest

from tests.hostile.innocents import Sample
from tests.hostile.process_use import Cores
from tests.hostile.results import Quiet, Row, row

QUIET = Quiet(p99_s=0.1, stored_s=1.0, errors=0)


def _row(took_s: float, quiet: Quiet, fault: str | None = None) -> Row:
    during = [Sample("chat", due / 10, took_s, fault) for due in range(300)]
    nothing = Cores(1.0, 0.0)
    return row("x", {}, during=during, after=[], stored=[], ended_at=30.0, cores=nothing, quiet=quiet,
               peak_bytes={"gateway": 1}, backlog=0)  # fmt: skip


@pytest.mark.parametrize(("busy_s", "missed"), [(0.0, ["p99 4x quiet"]), (0.05, ["p99 4x quiet"]), (0.2, [])])
def test_a_row_is_compared_with_the_slower_of_quiet_and_control(busy_s: float, missed: list[str]) -> None:
    assert _row(0.4, replace(QUIET, busy_p99_s=busy_s)).missed({"gateway": 1.0}) == missed


def test_times_are_not_comparable_when_the_control_alone_is_past_the_goal() -> None:
    assert replace(QUIET, busy_p99_s=0.3).is_comparable
    assert not replace(QUIET, busy_p99_s=0.31).is_comparable


def test_a_fault_is_an_error() -> None:
    assert _row(0.1, QUIET, "503").missed({"gateway": 1.0}) == ["300 errors"]
