"""The gate with everything real, one model served at a time: gateway, worker, store, Redis, vLLM on the CPU."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from inference.registry import read_registry
from memloop.profiles import load_profile
from tests.dialogues.scripted import TINY
from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment
from tests.trainer.gate_rig import write_record
from trainer.data import schemas
from trainer.data.parquet import write_parquet
from trainer.data.tiny_rows import Hardness, tiny_rows
from trainer.rollout.export_record import TOKENIZER_FILES
from trainer.tiny.prose import book

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
_REPOSITORY = Path(__file__).parents[2]
_ROWS = 54
"""The fewest for the default margin."""


def write_export(folder: Path, *, noise: float) -> Path:
    """The shipped model with its weights moved at random by so many of their standard deviations, as an export."""
    import torch  # here: every process that collects the tests would import it
    from safetensors.torch import load_file, save_file  # pyright: ignore[reportUnknownVariableType]

    folder.mkdir()
    for name in (*TOKENIZER_FILES, "config.json"):
        shutil.copyfile(TINY / name, folder / name)
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    weights = {name: value.float() for name, value in load_file(TINY / "model.safetensors").items()}
    moved = {name: value + noise * value.std() * torch.randn(value.shape) for name, value in weights.items()}
    file = folder / "model.safetensors"
    save_file({name: value.bfloat16() for name, value in moved.items()}, file, metadata={"format": "pt"})
    write_record(folder, step=1)
    return folder


@contextmanager
def served(home: Path, port: int, **settings: str) -> Generator[None]:
    """A local stack meanwhile."""
    environment = clean_environment(MEMLOOP_HOME=str(home), **settings)
    up = subprocess.run(_memloop("up", "--detach", "--port", str(port)), env=environment, cwd=_REPOSITORY, check=False)
    assert up.returncode == 0
    try:
        yield
    finally:
        subprocess.run(_memloop("down"), env=environment, cwd=_REPOSITORY, check=True)


def gate(candidate: Path, folder: Path, port: int) -> "subprocess.CompletedProcess[str]":
    where = ("--gateway", f"http://127.0.0.1:{port}", "--inference", f"http://127.0.0.1:{port + 2}")
    what = ("--candidate", str(candidate), "--incumbent", "memloop-tiny", "--held-out", str(folder / "rows.parquet"))
    command = (sys.executable, "-m", "trainer", "gate", *where, *what, "--out", str(folder / f"out-{candidate.name}"))
    return subprocess.run(command, env=os.environ, cwd=_REPOSITORY, capture_output=True, text=True, check=False)


def _memloop(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "memloop_cli", *arguments)


def test_one_engine_measures_first_the_incumbent_and_then_each_candidate(tmp_path: Path) -> None:
    rows = islice(
        tiny_rows(random.Random(0), "memagent", load_profile("tiny"), book("held_out"), Hardness(chunks=2)), _ROWS
    )
    write_parquet(rows, tmp_path / "rows.parquet", schemas.READING)
    near, spoilt = write_export(tmp_path / "near", noise=0.001), write_export(tmp_path / "spoilt", noise=1.0)
    home, port = tmp_path / "home", free_port(*range(1, 6))

    with served(home, port):
        early = gate(near, tmp_path, port)
    assert (early.returncode, early.stdout) == (1, "")
    assert "serves memloop-tiny, which has no export.json: it is another checkpoint" in early.stderr

    with served(home, port, MEMLOOP_MODEL="memloop-tiny", MEMLOOP_MODEL_PATH=str(near)):
        passed = gate(near, tmp_path, port)
    assert passed.returncode == 0, passed.stderr
    (tmp_path / "models.toml").write_text(passed.stdout)
    assert read_registry(tmp_path / "models.toml")["near"].source == str(near)
    assert "0 failed" in (tmp_path / "out-near" / "conformance.txt").read_text()

    shutil.copytree(tmp_path / "out-near", tmp_path / "out-spoilt", ignore=shutil.ignore_patterns("candidate.jsonl"))
    with served(home, port, MEMLOOP_MODEL="memloop-tiny", MEMLOOP_MODEL_PATH=str(spoilt)):
        refused = gate(spoilt, tmp_path, port)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "refused: " in refused.stderr
    assert not (spoilt / "README.md").exists()
