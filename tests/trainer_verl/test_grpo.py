"""Real verl on real Ray: two GRPO steps of each loop on the CPU, then export, then the loop reads on what was trained.

One run trains all three loops, two batches of each in a row, so that Ray starts once.
"""

import json
import os
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from prometheus_client.samples import Sample
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from memloop.chunking import TokenizerSplitter
from memloop.loops.memagent import read_document
from memloop.ports import ChatModel
from memloop.profiles import load_profile
from memloop_clients.engine import EngineClient
from tests.dialogues.scripted import DOCUMENT, QUESTION, TINY
from tests.trainer_verl.serving import serving, until_up
from trainer.__main__ import main
from trainer.data import schemas
from trainer.data.parquet import write_parquet
from trainer.data.rows import AgentName
from trainer.data.tiny_rows import Hardness, tiny_rows
from trainer.metrics_exporter import RunLog
from trainer.rollout.cpu.chat import BatchedModel
from trainer.rollout.cpu.engine import Size
from trainer.rollout.curves import LOG
from trainer.tiny.prose import book

LOOPS: tuple[AgentName, ...] = ("memagent", "memreread", "memreader")
PROMPTS, ROLLOUTS, STEPS = 2, 4, 6
KL = 0.1
RUN_TIMEOUT_S = 900
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run's metrics (``metrics.jsonl``) and its checkpoint."""
    folder = tmp_path_factory.mktemp("run")
    _write_rows(folder / "rows.parquet")
    overrides = {
        "data.train_files": folder / "rows.parquet",
        "data.val_files": folder / "rows.parquet",
        "data.shuffle": "false",
        "data.train_batch_size": PROMPTS,
        "actor_rollout_ref.actor.ppo_mini_batch_size": PROMPTS,
        "actor_rollout_ref.actor.optim.lr": 1e-3,
        "actor_rollout_ref.actor.use_kl_loss": "true",
        "actor_rollout_ref.actor.kl_loss_coef": KL,
        "actor_rollout_ref.rollout.n": ROLLOUTS,
        "algorithm.rollout_correction.bypass_mode": "false",
        "memloop.decisions": "graded",  # right or wrong alone may be the same for all rollouts of a question
        "memloop.updates": 2,
        "memloop.loops": f"[{','.join(LOOPS)}]",
        "trainer.total_training_steps": STEPS,
        "trainer.val_before_train": "false",
        "trainer.test_freq": -1,
        "trainer.save_freq": STEPS,
        "trainer.default_local_dir": folder / "checkpoints",
        "trainer.logger": "[file,tensorboard]",
    }
    environment = {"VERL_FILE_LOGGER_PATH": str(folder / "metrics.jsonl"), "TENSORBOARD_DIR": str(folder / "board")}
    command = [sys.executable, "-m", "trainer", "train", "--recipe", "trainer/recipes/tiny-memagent-cpu.yaml"]
    done = subprocess.run(
        [*command, *(f"{key}={value}" for key, value in overrides.items())],
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return folder


@pytest.fixture(scope="module")
def exported(trained: Path) -> Path:
    """The last checkpoint as Hugging Face files."""
    checkpoint = trained / "checkpoints" / f"global_step_{STEPS}"
    out = trained / "exported"
    main(["export", "--checkpoint", str(checkpoint), "--base", str(TINY), "--profile", "tiny", "--out", str(out)])
    return out


def test_every_loop_makes_two_steps_with_gradients(trained: Path) -> None:
    steps = _metrics(trained)
    assert len(steps) == STEPS
    assert all(step["memloop/rollouts"] == PROMPTS * ROLLOUTS for step in steps)
    for number, loop in enumerate(LOOPS):
        of_loop = steps[2 * number : 2 * number + 2]
        assert all(step["actor/grad_norm"] > 0 for step in of_loop), (loop, of_loop)
        assert any(step["memloop/live_groups"] > 0 for step in of_loop), (loop, of_loop)  # not of the KL loss alone


def test_weights_reach_the_rollout_after_every_step(trained: Path, exported: Path) -> None:
    """The rollout's log-probabilities stay the trainer's, while the policy moves much further than they differ."""
    steps = _metrics(trained)
    assert all(step["training/off_policy/trajectory_staleness/max"] == 0 for step in steps)
    assert max(step["training/rollout_probs_diff_max"] for step in steps) < 1e-3
    before, after = load_file(TINY / "model.safetensors"), load_file(exported / "model.safetensors")
    moved = max(float((after[name].float() - before[name].float()).abs().max()) for name in before)
    assert moved > 1e-3


def test_the_loss_holds_the_distance_to_the_reference_policy(trained: Path) -> None:
    """It is none before the first optimizer step, and what follows is made of both parts."""
    for step in _metrics(trained):
        assert step["actor/kl_coef"] == pytest.approx(KL)
        assert step["actor/kl_loss"] > 0
        assert step["actor/loss"] == pytest.approx(step["actor/pg_loss"] + KL * step["actor/kl_loss"], abs=1e-7)


def test_tensorboard_prometheus_and_the_curves_have_the_same_figures(trained: Path) -> None:
    logged = _metrics(trained)
    curves = [json.loads(line) for line in (trained / "checkpoints" / LOG).read_text("utf-8").splitlines()]
    assert [point["step"] for point in curves] == list(range(1, STEPS + 1))
    board = EventAccumulator(str(trained / "board")).Reload()
    exported = {sample.labels["name"]: sample.value for sample in _samples(trained / "metrics.jsonl")}
    for name in ("memloop/reward", "memloop/live_groups", "actor/grad_norm", "response_length/mean"):
        values = [step[name] for step in logged]
        assert [point["data"][name] for point in curves] == values
        assert [event.step for event in board.Scalars(name)] == list(range(1, STEPS + 1))
        assert [event.value for event in board.Scalars(name)] == pytest.approx(values, rel=1e-6)  # it keeps float32
        assert exported[name] == values[-1]


def test_an_export_keeps_tokenizer_and_template_and_describes_itself(exported: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json"):
        assert (exported / name).read_bytes() == (TINY / name).read_bytes()
    record = json.loads((exported / "export.json").read_text("utf-8"))
    assert (record["step"], record["dtype"]) == (STEPS, "bfloat16")
    assert record["profile_hash"] == load_profile("tiny").content_hash
    assert {weight.dtype for weight in load_file(exported / "model.safetensors").values()} == {torch.bfloat16}


async def test_the_loop_reads_on_the_exported_checkpoint(exported: Path) -> None:
    model = BatchedModel.load(exported, Size(rows=1, length=1024))
    await _read(exported, model)
    model.close()


@pytest.mark.slow
async def test_vllm_serves_the_exported_checkpoint_to_the_loop(exported: Path) -> None:
    with serving(exported) as url:
        async with EngineClient(url, model="memloop-tiny") as engine:
            await until_up(engine)
            await _read(exported, engine)


async def _read(exported: Path, model: ChatModel) -> None:
    """Check that the loop reads a document to its answer."""
    chunks = TokenizerSplitter((exported / "tokenizer.json").read_bytes()).split(DOCUMENT, chunk_tokens=256)
    result = await read_document(QUESTION, chunks, model=model, profile=load_profile("tiny"))
    assert result.usage.llm_calls == len(chunks) + 1
    assert result.boxed


def _write_rows(file: Path) -> None:
    rng, profile, prose, short = random.Random(0), load_profile("tiny"), book("train"), Hardness(chunks=2)
    of_loops = [islice(tiny_rows(rng, loop, profile, prose, short), STEPS // 3 * PROMPTS) for loop in LOOPS]
    rows = [row for rows_of_loop in of_loops for row in rows_of_loop]
    write_parquet(rows, file, schemas.WRITING)


def _metrics(trained: Path) -> list[dict[str, Any]]:
    lines = (trained / "metrics.jsonl").read_text("utf-8").splitlines()
    return [entry["data"] for entry in map(json.loads, lines) if "actor/grad_norm" in entry["data"]]


def _samples(log: Path) -> list[Sample]:
    """The values that Prometheus scrapes from the run's log."""
    return [sample for metric in RunLog(log).collect() if metric.name == "trainer_value" for sample in metric.samples]
