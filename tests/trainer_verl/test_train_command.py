"""``trainer train`` with ``--check`` and ``--preflight``. All commands run in one process: verl takes long to load."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

RECIPES = sorted(Path("trainer/recipes").glob("*.yaml"))
TINY = Path("trainer/recipes/tiny-memagent-cpu.yaml")
CHECKED = [*(recipe for recipe in RECIPES if not recipe.stem.endswith("-cpu")), TINY]
_RUN_ALL = """
import io, json, sys
from contextlib import redirect_stderr
from trainer.__main__ import main

def status_of(arguments):
    try:
        main(arguments)
    except SystemExit as ended:
        return ended.code or 0
    return 0

ended = []
for arguments in json.load(sys.stdin):
    with redirect_stderr(io.StringIO()) as errors:
        ended.append((status_of(arguments), errors.getvalue()))
print(json.dumps(ended))
"""


@dataclass(frozen=True)
class Ended:
    """What a command returned, and its standard error."""

    status: int
    errors: str


@dataclass(frozen=True)
class Commands:
    """``checks`` by recipe; a ``preflight`` of a run that cannot begin, whose folder would be ``folder``."""

    checks: dict[Path, Ended]
    preflight: Ended
    folder: Path


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    folder = tmp_path_factory.mktemp("preflight") / "run"
    wrong = ["data.train_files=a.parquet", "actor_rollout_ref.model.path=./b", f"trainer.default_local_dir={folder}"]
    checks = [["train", "--check", "--recipe", str(recipe)] for recipe in CHECKED]
    *checked, preflight = _run_all([*checks, ["train", "--preflight", "--recipe", str(TINY), *wrong]])
    return Commands(dict(zip(CHECKED, checked, strict=True)), preflight, folder)


@pytest.mark.parametrize("recipe", CHECKED, ids=lambda path: path.stem)
def test_verl_accepts_a_recipe_as_it_does_before_a_run(recipe: Path, commands: Commands) -> None:
    assert commands.checks[recipe].status == 0, commands.checks[recipe].errors


def test_a_run_that_cannot_begin_ends_with_every_reason_and_takes_nothing(commands: Commands) -> None:
    ended = commands.preflight
    assert ended.status == 2
    assert "a.parquet: there is no such file" in ended.errors
    assert "./b: there is no such folder" in ended.errors
    assert "Traceback" not in ended.errors
    assert list(commands.folder.parent.iterdir()) == []


def _run_all(commands: Sequence[Sequence[str]]) -> list[Ended]:
    """Run the commands one after the other in one process. Raises AssertionError when one ends it."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN_ALL],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [Ended(*ended) for ended in json.loads(done.stdout.splitlines()[-1])]
