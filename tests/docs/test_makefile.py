"""The Makefile finds the files that its commands are made of."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("command", ["setup", "demo", "up", "check", "test"])
def test_a_command_is_made_of_files_that_are_there(command: str) -> None:
    planned = subprocess.run(["make", "--dry-run", command], cwd=ROOT, capture_output=True, text=True, check=False)

    assert planned.returncode == 0, planned.stderr
