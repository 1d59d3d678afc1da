"""A pytest plug-in: CPU seconds of each test and of each file's collection, with those of the processes it starts.

    PYTHONPATH=. .venv/bin/pytest -p tests.cpu_times --cpu-times=times.jsonl tests/gateway

prints the most expensive tests and files and writes all of them as JSON lines. Wall time depends on what else runs on
the machine, and on how long a test waits; CPU time is what a test costs the whole run. Works with ``-n`` too.
"""

import json
import os
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

import pytest

_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_SHOWN: Final = 25


@dataclass(frozen=True, slots=True)
class Cost:
    """What a phase of a test (``setup``, ``call``, ``teardown``) or a file's ``collection`` took, in seconds."""

    of: str
    phase: str
    cpu_s: float
    wall_s: float


@dataclass(frozen=True)
class CpuTimes:
    """Measures in the process that runs the tests, and appends each phase to the file at once."""

    file: Path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._measured(item, "setup"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._measured(item, "call"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._measured(item, "teardown"))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        is_file = isinstance(collector, pytest.Module)
        return (yield from self._measured(collector, "collection")) if is_file else (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("CPU seconds, with child processes")
        for line in table([Cost(**json.loads(line)) for line in self.file.read_text("utf-8").splitlines()]):
            terminalreporter.write_line(line)

    def _measured(self, of: pytest.Item | pytest.Collector, phase: str) -> Generator[None, Any, Any]:
        cpu_s, began = _cpu_s(), time.perf_counter()
        try:
            return (yield)
        finally:
            cost = Cost(of.nodeid, phase, round(max(0.0, _cpu_s() - cpu_s), 2), round(time.perf_counter() - began, 2))
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(asdict(cost))}\n")


def table(costs: Iterable[Cost]) -> Iterator[str]:
    """The most expensive phases, the sums of all phases by file, and the sum of all."""
    for cost in sorted(costs, key=lambda cost: -cost.cpu_s)[:_SHOWN]:
        yield f"{cost.cpu_s:8.2f} of {cost.wall_s:8.2f} s  {cost.phase:<10} {cost.of}"
    files = dict[str, float]()
    for cost in costs:
        file = cost.of.partition("::")[0]
        files[file] = files.get(file, 0.0) + cost.cpu_s
    yield ""
    most = sorted(files, key=lambda file: -files[file])[:_SHOWN]
    yield from (f"{files[file]:8.2f} s  {file}" for file in most)
    yield f"{sum(files.values()):8.2f} s  in all"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", metavar="FILE", required=True, help="append the CPU seconds of each phase there")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuTimes(Path(cast(str, config.getoption("--cpu-times")))), "cpu-times")


def _cpu_s() -> float:
    """Of this process, its ended children, and the descendants that run."""
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system + sum(_of_descendants())


def _of_descendants() -> Iterator[float]:
    parents, seconds = dict[int, int](), dict[int, float]()
    for process in os.listdir("/proc"):  # noqa: PTH208 - a path for each process would cost more than it measures
        if process.isdigit() and (fields := _fields(process)):
            parents[int(process)] = int(fields[1])
            seconds[int(process)] = sum(map(int, fields[11:15])) * _TICK_S
    ours = {os.getpid()}
    while found := {child for child, parent in parents.items() if parent in ours and child not in ours}:
        ours |= found
    yield from (seconds[process] for process in ours if process != os.getpid())


def _fields(process: str) -> list[str]:
    """What follows the name in ``/proc/PID/stat``: state, parent, …; nothing of a process that has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()
    except OSError:
        return []
