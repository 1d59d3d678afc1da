"""A recipe as a job of a Ray cluster that is there, as ``ray job submit`` starts it, with Ray's token asked for.

The second job has another disk, and goes on from the storage. Every tracker writes.
"""

import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from memloop.profiles import load_profile
from tests.fakes.ports import free_port
from tests.fakes.processes import end
from trainer.checkpoint_store import CheckpointStore
from trainer.data import schemas
from trainer.data.parquet import write_parquet
from trainer.data.tiny_rows import Hardness, tiny_rows
from trainer.tiny.prose import book

RAY = Path(sys.executable).parent / "ray"
TRAIN = [sys.executable, "-m", "trainer", "train", "--recipe", "trainer/recipes/tiny-memagent-cpu.yaml"]
AGENTS = ("dashboard-agent-listen", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export")
"""Ray gives these processes 15 seconds to find ports of their own, too few where more work runs beside."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_jobs_train_keep_their_checkpoints_and_go_on_from_them(tmp_path: Path) -> None:
    rows = islice(tiny_rows(Random(0), "memagent", load_profile("tiny"), book("train"), Hardness(chunks=2)), 12)
    write_parquet(rows, tmp_path / "rows.parquet", schemas.READING)
    store = CheckpointStore.at((tmp_path / "bucket").as_uri())
    with _cluster() as (dashboard, environment):
        submit = [RAY, "job", "submit", "--address", dashboard, "--", *TRAIN]
        _run([*submit, *_overrides(tmp_path, steps=2, disk="first")], environment, 1200)
        assert store.finished() == [2]
        assert {"data.pt", "actor/model_world_size_1_rank_0.pt"} <= store.contents(2).keys()
        _run([*submit, *_overrides(tmp_path, steps=3, disk="second")], environment, 1200)
    assert store.finished() == [2, 3]
    assert [_steps(tmp_path / f"{disk}.jsonl") for disk in ("first", "second")] == [[1, 2], [3]]
    for trackers in ("board/**/events.out.tfevents.*", "wandb/wandb/offline-run-*/*.wandb"):
        assert len(list(tmp_path.glob(trackers))) == 2
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as tables:
        kept = tables.execute("SELECT step FROM metrics WHERE key = 'memloop/reward' ORDER BY step").fetchall()
    assert kept == [(1,), (2,), (3,)]


def _steps(metrics: Path) -> list[int]:
    return [json.loads(line)["step"] for line in metrics.read_text("utf-8").splitlines()]


def _overrides(tmp_path: Path, *, steps: int, disk: str) -> list[str]:
    values = {
        "data.train_files": tmp_path / "rows.parquet",
        "data.val_files": tmp_path / "rows.parquet",
        "data.train_batch_size": 4,
        "actor_rollout_ref.rollout.n": 4,
        "trainer.total_training_steps": steps,
        "trainer.val_before_train": "false",
        "trainer.test_freq": -1,
        "trainer.save_freq": steps,
        "trainer.default_local_dir": tmp_path / disk,
        "trainer.logger": "[file,tensorboard,mlflow,wandb]",
        "environment.VERL_FILE_LOGGER_PATH": tmp_path / f"{disk}.jsonl",
        "environment.TENSORBOARD_DIR": tmp_path / "board",
        "environment.MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path / 'mlflow.db'}",
        "environment.WANDB_MODE": "offline",
        "environment.WANDB_DIR": tmp_path / "wandb",
        "memloop.checkpoints": (tmp_path / "bucket").as_uri(),
    }
    return [f"{key}={value}" for key, value in values.items()]


@contextmanager
def _cluster() -> Generator[tuple[str, dict[str, str]]]:
    """One machine with a GPU that is none; its address once it takes jobs, and the environment with its token.

    Ray's sockets want a short path, and a folder of its own keeps other runs here from finding it.
    """
    folder, port, dashboard = tempfile.mkdtemp(prefix="ray", dir="/tmp"), free_port(), free_port()
    environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_USAGE_STATS_ENABLED": "0"}
    start = [RAY, "start", "--head", "--num-cpus=32", "--num-gpus=1", f"--port={port}", f"--temp-dir={folder}"]
    agents = [f"--{name}-port={free_port()}" for name in AGENTS]
    head = subprocess.Popen(
        [*start, *agents, "--block", "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}"],
        env={**os.environ, **environment, "RAY_raylet_start_wait_time_s": "180"},
    )
    try:
        address = f"http://127.0.0.1:{dashboard}"
        _run([RAY, "job", "submit", "--address", address, "--", "true"], environment, 300, tries=30)
        yield address, environment
    finally:
        end(head, timeout_s=400)
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[object], environment: dict[str, str], timeout_s: float, *, tries: int = 1) -> None:
    for _ in range(tries):
        done = subprocess.run(
            list(map(str, command)),
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode == 0:
            return
    pytest.fail(done.stdout[-4000:])
