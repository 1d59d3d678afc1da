#!/usr/bin/env python3
"""Runs every test suite, one after the other, and prints a table of their results: ``make test-all``.

A suite is a target of the Makefile. A failure does not stop the run; the exit status is 1 when any suite failed.
Arguments name the suites to run instead of all. With ``--resume`` those that have passed on the same commit, without a
change to it, are not run again: the whole takes hours. Standard library only.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
SUITES: Final = (
    "test",
    "test-console",
    "test-slow",
    "test-state-machine",
    "test-kills",
    "test-erasures",
    "test-qdrant",
    "test-stores",
    "test-cluster",
    "test-failover",
    "test-rolling",
    "test-balancing",
    "test-hostile",
    "test-real-engines",
    "test-clients",
    "test-ray",
    "test-ray-job",
    "test-agents",
    "test-resume",
    "test-placement",
    "test-lora",
    "test-export",
    "test-mutants",
    "test-gate",
    "test-rollout",
    "test-deploy",
    "test-docs",
    "test-install",
)
INSIDE_OTHERS: Final = frozenset(
    {"lint", "check", "test-calm", "test-fast", "test-serving", "test-trainer", "test-workspace"}
    | {"test-sdks", "test-coding-agents", "test-frameworks"}
)
"""Targets that ``test`` or ``test-clients`` covers."""
ELSEWHERE: Final = frozenset({"test-kubernetes"})
"""Targets that need what no machine has by itself: a cluster."""
RECORD: Final = ROOT / ".memloop/test-all.jsonl"
_CHANGED: Final = "-changed"
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


@dataclass(frozen=True)
class Record:
    """The results of one commit in a file, one line each, which outlive a run that is cut short."""

    path: Path
    commit: str

    def passed(self) -> dict[str, Result]:
        """Return the suites that have passed; none if the commit has been changed, for nobody knows how."""
        if self.commit.endswith(_CHANGED) or not self.path.is_file():
            return {}
        rows = [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]
        found = [_result(row) for row in rows if row["commit"] == self.commit]
        return {result.suite: result for result in found if result.status == 0}

    def add(self, result: Result) -> None:
        """Add one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as lines:
            print(json.dumps({"commit": self.commit, **vars(result)}), file=lines)


def run(suites: Sequence[str], folder: Path, record: Record, *, resume: bool = False) -> int:
    """Run the suites of that folder's Makefile; ``resume`` leaves out what has passed. Returns the exit status."""
    passed = record.passed() if resume else {}
    results: list[Result] = []
    for suite in suites:
        if (result := passed.get(suite)) is None:
            print(f"\n===== make {suite}", flush=True)
            record.add(result := _run(suite, folder))
        print(result.line, flush=True)
        results.append(result)
    print("\nsuite                result  min:s  tests", *(result.line for result in results), sep="\n")
    return int(any(result.status for result in results))


def _run(suite: str, folder: Path) -> Result:
    counts, began = Counter[str](), time.monotonic()
    command = ["make", "--no-print-directory", suite, "ARGS="]  # those of the whole reach it otherwise
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


def _result(row: dict[str, Any]) -> Result:
    return Result(row["suite"], row["status"], row["took_s"], Counter(row["counts"]))


def main() -> int:
    """Run what the arguments ask for. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="make test-all", description=__doc__)
    parser.add_argument("--resume", action="store_true", help="leave out what has passed on this very commit")
    parser.add_argument("suites", nargs="*", default=SUITES)
    options = parser.parse_args()
    describe = ["git", "describe", "--always", "--exclude=*", "--abbrev=40", f"--dirty={_CHANGED}"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return run(options.suites, ROOT, Record(RECORD, commit), resume=options.resume)


if __name__ == "__main__":
    sys.exit(main())
