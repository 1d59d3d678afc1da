#!/usr/bin/env python3
"""Runs every test suite, one after the other, and prints a table of their results: ``make test-all``.

A suite is a target of the Makefile. A failure does not stop the run; the exit status is 1 when any suite failed.
Arguments name the suites to run instead of all. Standard library only.
"""

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SUITES: Final = (
    "test",
    "test-console",
    "test-slow",
    "test-state-machine",
    "test-kills",
    "test-qdrant",
    "test-stores",
    "test-cluster",
    "test-failover",
    "test-rolling",
    "test-balancing",
    "test-hostile",
    "test-sdks",
    "test-frameworks",
    "test-ray",
    "test-ray-job",
    "test-agents",
    "test-resume",
    "test-lora",
    "test-export",
    "test-mutants",
    "test-gate",
    "test-rollout",
    "test-deploy",
    "test-docs",
    "test-install",
)
INSIDE_TEST: Final = frozenset(
    {"lint", "check", "test-calm", "test-fast", "test-serving", "test-trainer", "test-workspace"}
)
"""Targets that ``test`` covers."""
ELSEWHERE: Final = frozenset({"test-kubernetes"})
"""Targets that need what no machine has by itself: a cluster."""
_SUMMARY: Final = re.compile(r"^=* ?\d+ (?:passed|failed|skipped|deselected|error).* in [\d.]+s")
_COUNT: Final = re.compile(r"(\d+) (passed|failed|skipped|error)")


@dataclass(frozen=True)
class Result:
    """How a suite ended, how long it took, and how many of its tests ended how."""

    suite: str
    status: int
    took_s: float
    counts: Counter[str]

    @property
    def line(self) -> str:
        """A row of the table."""
        result = "passed" if self.status == 0 else "FAILED"
        minutes, seconds = divmod(round(self.took_s), 60)
        tests = ", ".join(f"{count} {word}" for word, count in self.counts.items())
        return f"{self.suite:<20} {result}  {minutes:>4}:{seconds:02}  {tests}".rstrip()


def run(suites: Sequence[str], folder: Path = ROOT) -> int:
    """Run the suites of that folder's Makefile. Returns the exit status."""
    results: list[Result] = []
    for suite in suites:
        print(f"\n===== make {suite}", flush=True)
        results.append(_run(suite, folder))
        print(results[-1].line, flush=True)
    print("\nsuite                result  min:s  tests", *(result.line for result in results), sep="\n")
    return int(any(result.status for result in results))


def _run(suite: str, folder: Path) -> Result:
    counts, began = Counter[str](), time.monotonic()
    command = ["make", "--no-print-directory", suite]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as made:
        for line in made.stdout or ():
            print(line, end="", flush=True)
            counts += counted(line)
    return Result(suite, made.returncode, time.monotonic() - began, counts)


def counted(line: str) -> Counter[str]:
    """The numbers in the last line of a pytest run; nothing for another line."""
    found = _COUNT.findall(line) if _SUMMARY.match(line) else ()
    return Counter({word: int(number) for number, word in found})


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:] or SUITES))
