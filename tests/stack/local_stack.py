"""A stack that ``memloop up --detach`` starts, with everything real."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from memloop_cli.home import Home
from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, is_running

START_TIMEOUT_S: Final = 400.0
REPOSITORY: Final = Path(__file__).parents[2]


class LocalStack:
    """A stack that ``memloop up --detach`` started, and the command line that talks to it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.home = Home(folder)
        self._settings = settings

    def memloop(self, *arguments: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "memloop_cli", *arguments],
            env=self.environment(),
            cwd=REPOSITORY,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=START_TIMEOUT_S,
        )

    def up(self) -> "subprocess.CompletedProcess[str]":
        return self.memloop("up", "--detach", "--port", str(free_port(*range(1, 8))))

    def environment(self) -> dict[str, str]:
        """Every process of the stack inherits the mark, and so can be found whatever became of its parents."""
        home = str(self.home.folder)
        return clean_environment(MEMLOOP_HOME=home, STACK_OF_TEST=home, **self._settings)

    def pids(self) -> list[int]:
        """All running processes of this stack."""
        pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
        return [pid for pid in pids if is_running(pid) and self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return f"STACK_OF_TEST={self.home.folder}".encode() in variables
