"""``make gpu-proof``: its dry run, and what becomes of steps that fail, hang or cannot run."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.gpu_proof.__main__ import main
from benchmarks.gpu_proof.running import all_of, plan, run
from benchmarks.gpu_proof.steps import Step, steps


def step(code: str, *, limit_s: float = 60.0, needs: tuple[str, ...] = ()) -> Step:
    return Step("a step", sys.executable, [(sys.executable, "-c", code)], limit_s, needs)


def test_the_dry_run_names_every_step_and_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dry-run", "--out", str(tmp_path)]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    said = json.loads(last)
    names = [each["step"] for each in said["steps"]]
    assert names == ["torch", "transformers", "vllm", "engine benchmark", "two GRPO steps"]
    assert [line.split("  ")[0] for line in lines] == names
    assert {each["status"] for each in said["steps"]} == {"planned"}
    assert all(each["limit_s"] > 0 for each in said["steps"])
    assert list(tmp_path.iterdir()) == []


def test_the_dry_run_notices_a_recipe_that_is_gone(tmp_path: Path) -> None:
    last = steps(tmp_path, trainer_python=sys.executable, shape="any")[-1]
    assert plan(last).status == "planned"
    gone = plan(replace(last, files=("trainer/recipes/gone.yaml",)))
    assert (gone.status, gone.reason) == ("failed", "there is no trainer/recipes/gone.yaml")


def test_a_step_passes_with_the_figures_of_its_last_line(tmp_path: Path) -> None:
    result = run(step("print('warming up'); print('{\"tflops\": 1.5}')"), tmp_path)
    assert (result.status, result.figures) == ("passed", {"tflops": 1.5})


def test_figures_may_be_followed_by_an_engines_last_words(tmp_path: Path) -> None:
    """vLLM logs its shutdown after the probe has printed."""
    result = run(step("print('{broken'); print('{\"tokens\": 7}'); print('INFO shutdown complete')"), tmp_path)
    assert (result.status, result.figures) == ("passed", {"tokens": 7})


def test_the_engine_benchmark_measures_one_engine_in_its_time(tmp_path: Path) -> None:
    """One engine of 4 billion parameters took up to five minutes on an H100."""
    (command,) = next(
        each for each in steps(tmp_path, trainer_python="any", shape="any") if "engine" in each.name
    ).commands
    assert command[command.index("--variant") + 1] == "no speculation"


def test_a_step_that_fails_shows_its_last_words(tmp_path: Path) -> None:
    result = run(step("raise SystemExit('no CUDA device')"), tmp_path)
    assert (result.status, result.reason) == ("failed", "no CUDA device")


def test_a_step_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    hangs = "import time; time.sleep(600)"
    parent = f"import subprocess,sys; subprocess.run([sys.executable, '-c', {hangs!r}])"
    result = run(step(parent, limit_s=0.5), tmp_path)
    assert result.status == "timed out"
    assert result.seconds < 60


def test_a_step_without_its_modules_is_skipped(tmp_path: Path) -> None:
    result = run(step("print(1)", needs=("json", "no_such_module")), tmp_path)
    assert (result.status, "no_such_module" in result.reason) == ("skipped", True)
    absent = run(replace(step("print(1)"), python=str(tmp_path / "python")), tmp_path)
    assert absent.status == "skipped"


def test_a_failure_does_not_stop_the_next_step(tmp_path: Path) -> None:
    results = all_of([step("raise SystemExit(1)"), step("print('{}')")], lambda each: run(each, tmp_path))
    assert [result.status for result in results] == ["failed", "passed"]
