"""Runs the steps: one after the other, whatever becomes of the one before."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import orjson

from benchmarks.gpu_proof.steps import ROOT, Step

Status: TypeAlias = Literal["passed", "failed", "timed out", "skipped", "planned"]
_LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class Result:
    """How a step ended, in how many seconds, with the figures that it printed or the reason."""

    step: str
    status: Status
    seconds: float
    limit_s: float
    figures: object = None
    reason: str = ""

    @property
    def line(self) -> str:
        """A row of the table."""
        shown = self.reason if self.figures is None else orjson.dumps(self.figures).decode()
        return (
            f"{self.step:<18} {self.status:<10} {self.seconds:>7.1f} s of {self.limit_s:>4.0f}  {shown[:200]}".rstrip()
        )


def run(step: Step, folder: Path) -> Result:
    """Run a step; all that it prints goes into a log in the folder."""
    if (missing := missing_of(step)) is not None:
        return Result(step.name, "skipped", 0.0, step.limit_s, reason=missing)
    began, log = time.monotonic(), folder / f"{step.name.replace(' ', '-')}.log"
    for command in step.commands:
        status = _ended(command, log, step.limit_s - (time.monotonic() - began))
        if status != 0:
            seconds = time.monotonic() - began
            word: Status = "timed out" if status is None else "failed"
            return Result(step.name, word, seconds, step.limit_s, reason=_last_words(log))
    return Result(step.name, "passed", time.monotonic() - began, step.limit_s, _figures(log))


def plan(step: Step) -> Result:
    """Return what a run would do, without it; failed when a file that it reads is missing."""
    absent = [name for name in step.files if not (ROOT / name).exists()]
    if absent:
        return Result(step.name, "failed", 0.0, step.limit_s, reason=f"there is no {', '.join(absent)}")
    would = missing_of(step) or "; ".join(" ".join(command) for command in step.commands)
    return Result(step.name, "planned", 0.0, step.limit_s, reason=would)


def missing_of(step: Step) -> str | None:
    """Return why the step cannot run here: its environment, or a module of it."""
    if not Path(step.python).exists():
        return f"there is no {step.python}: make setup-trainer"
    check = f"import importlib.util as u,sys;print(*[n for n in {step.needs!r} if u.find_spec(n) is None])"
    found = subprocess.run([step.python, "-c", check], capture_output=True, text=True, check=False)
    missing = found.stdout.split() if found.returncode == 0 else ["a working Python"]
    return f"{step.python} has no {', '.join(missing)}" if missing else None


def _ended(command: Sequence[str], log: Path, limit_s: float) -> int | None:
    """Return the exit status; None when the time was up: the command and its children are then killed."""
    with (
        log.open("ab") as output,
        subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True) as process,
    ):
        try:
            return process.wait(max(0.1, limit_s))
        except subprocess.TimeoutExpired:
            return None
        finally:
            _kill_group(process.pid)


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def _lines(log: Path) -> list[str]:
    return [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]


def _last_words(log: Path) -> str:
    return " | ".join(_lines(log)[-_LAST_LINES:])[-400:]


def _figures(log: Path) -> object:
    """Return the last line that is a JSON object; None without one. An engine may log its end after it."""
    for line in reversed(_lines(log)):
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                return orjson.loads(line)
    return None
