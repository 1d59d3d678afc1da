"""``make gpu-proof``: its dry run, its packed folder, and what becomes of steps that fail, hang or cannot run."""

import ctypes
import json
import struct
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.gpu_proof import pack
from benchmarks.gpu_proof.__main__ import main
from benchmarks.gpu_proof.running import plan, run
from benchmarks.gpu_proof.slim import only_for
from benchmarks.gpu_proof.steps import Step, steps


def step(code: str, *, limit_s: float = 60.0, needs: tuple[str, ...] = ()) -> Step:
    return Step("a step", sys.executable, [(sys.executable, "-c", code)], limit_s, needs)


def test_the_dry_run_names_every_step_and_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dry-run", "--out", str(tmp_path)]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    said = json.loads(last)
    names = [each["step"] for each in said["steps"]]
    assert names == ["packages", "logits", "two GRPO steps", "resume", "export", "adapters", "six steps"]
    assert [line.split("  ")[0] for line in lines] == names
    assert {each["status"] for each in said["steps"]} == {"planned"}
    assert sum(each["limit_s"] for each in said["steps"]) <= 15 * 60
    assert list(tmp_path.iterdir()) == []


def test_the_dry_run_notices_a_recipe_that_is_gone(tmp_path: Path) -> None:
    last = steps(tmp_path)[-1]
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


def test_each_step_leaves_a_line_though_one_before_it_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "no-python"))
    assert main(["--out", str(tmp_path), "--only", "logits", "export"]) == 0
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [(line["step"], line["status"]) for line in lines] == [("logits", "skipped"), ("export", "skipped")]
    assert "make setup-trainer" in capsys.readouterr().out


def fat(*entries: tuple[int, bytes]) -> bytes:
    """A fat binary of kernels by architecture, laid out as CUDA's ``fatbinary_section.h`` has it."""
    body = b"".join(
        struct.pack("<HHIQQII", 2, 0x101, 64, len(kernel), 0, 0, architecture).ljust(64, b"\0") + kernel
        for architecture, kernel in entries
    )
    return b"\x50\xed\x55\xba" + struct.pack("<HHQ", 1, 16, len(body)) + body


def library(folder: Path, binary: bytes) -> Path:
    """A shared library with a function and the section in which CUDA's compiler puts kernels."""
    numbers = ",".join(map(str, binary))
    source = f'int answer(void) {{ return 42; }} const char k[] __attribute__((section(".nv_fatbin"))) = {{{numbers}}};'
    built = folder / "kernels.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", built], input=source, text=True, check=True)
    return built


def test_a_library_keeps_the_kernels_of_one_card_and_its_own_code(tmp_path: Path) -> None:
    built = library(tmp_path, fat((80, b"A" * 96), (90, b"H" * 96)) + fat((120, b"B" * 32), (90, b"I" * 32)))
    slim = only_for(built.read_bytes(), architecture=90)
    assert len(slim) == built.stat().st_size
    assert (b"H" * 96 in slim, b"I" * 32 in slim, b"A" * 96 in slim, b"B" * 32 in slim) == (True, True, False, False)
    built.write_bytes(slim)
    assert ctypes.CDLL(str(built)).answer() == 42
    assert only_for(b"no library", architecture=90) == b"no library"


def test_the_packed_folder_runs_where_it_is_unpacked_and_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "ray-2-py3-none-any.whl", "w") as wheel:
        program = zipfile.ZipInfo("ray/core/raylet")
        program.external_attr = 0o755 << 16
        wheel.writestr(program, "#!/bin/sh\n")
        wheel.writestr("ray/jars/ray_dist.jar", "left out")
        wheel.writestr("ray-2.dist-info/RECORD", "by it xgrammar finds its own library")
    assert pack.main([str(tmp_path / "packed"), "--wheels", str(wheels)]) == 0
    assert "MiB" in capsys.readouterr().out
    assert all(file.stat().st_size <= 28 * 2**20 for file in (tmp_path / "packed").iterdir())
    work, out = tmp_path / "work", tmp_path / "out"
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "WORK": str(work), "HOME": str(tmp_path)}
    command = [tmp_path / "packed/run.sh", out, "--only", "packages"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [line] = (out / "results.jsonl").read_text().splitlines()
    assert (json.loads(line)["status"], "has no verl" in json.loads(line)["reason"]) == ("skipped", True)
    assert (work / "wheels/ray/core/raylet").stat().st_mode & 0o100
    assert not (work / "wheels/ray/jars").exists()
    assert (work / "wheels/ray-2.dist-info/RECORD").is_file()
