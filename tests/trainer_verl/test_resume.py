"""Runs that are killed at random moments and resumed repeat an unbroken run to the last digit, on real verl and Ray.

One process trains, and the engine computes one row at a time: rounding then depends on nothing but the rows.
"""

import json
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, cast

import psutil
import pytest
import torch

from tests.trainer_verl.cluster import Cluster, cluster
from tests.trainer_verl.runs import PROMPTS, ROLLOUTS, command, finish, start, steps_of, write_rows
from trainer.rollout.curves import LOG
from trainer.rollout.group_filter import DROPPED
from trainer.rollout.latest import TRACKER, repair_tracker

STEPS, KILLS = 8, 5
BOUND = 2 * PROMPTS
"""The recipe's ``max_num_gen_batches``, in prompts."""
SAME = ("memloop/reward", "memloop/live_groups", "actor/pg_loss", "actor/grad_norm", "response_length/mean", DROPPED)
TIMEOUT_S = 1500
CHANGES = {
    "actor_rollout_ref.rollout.max_num_seqs": 1,
    "actor_rollout_ref.actor.optim.lr": 2e-4,
    "memloop.updates": 2,
    "trainer.save_freq": 1,
}


@pytest.fixture(scope="module")
def ray() -> Generator[Cluster]:
    """A cluster that outlives the runs that are killed on it."""
    with cluster() as made:
        yield made


@pytest.fixture(scope="module")
def whole(ray: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an unbroken run."""
    folder = tmp_path_factory.mktemp("whole")
    write_rows(folder / "rows.parquet", 200)
    _run(ray, folder, 0)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(5 * TIMEOUT_S)
def test_groups_of_equal_rewards_are_replaced_and_counted_in_real_steps(whole: Path) -> None:
    steps = steps_of(whole / "metrics-0.jsonl")
    assert sum(step[DROPPED] for step in steps.values()) > 0
    for step in steps.values():
        assert step["memloop/rollouts"] == PROMPTS * ROLLOUTS
        assert step["memloop/live_groups"] == 1 or step[DROPPED] == BOUND


@pytest.mark.slow
@pytest.mark.timeout(5 * TIMEOUT_S)
def test_a_run_killed_at_five_random_moments_earns_the_rewards_of_an_unbroken_one(
    ray: Cluster, whole: Path, tmp_path: Path
) -> None:
    broken, dice = tmp_path, Random(5)
    write_rows(broken / "rows.parquet", 200)
    expected = steps_of(whole / "metrics-0.jsonl")
    assert list(expected) == list(range(1, STEPS + 1))
    a_step_s = min(step["timing_s/step"] for step in expected.values())
    for attempt, step in enumerate(sorted(dice.sample(range(STEPS - 1), KILLS))):
        _run(ray, broken, attempt, kill_after=step, delay_s=dice.uniform(0, a_step_s))
    _run(ray, broken, KILLS)
    for attempt in range(KILLS + 1):
        for step, found in steps_of(broken / f"metrics-{attempt}.jsonl").items():
            print(attempt, step, {name: found[name] for name in SAME}, flush=True)
            assert {name: found[name] for name in SAME} == {name: expected[step][name] for name in SAME}
    curve = [json.loads(line)["step"] for line in (broken / "checkpoints" / LOG).read_text("utf-8").splitlines()]
    assert curve == list(expected)
    for name, weight in _weights(whole).items():
        assert torch.equal(weight, _weights(broken)[name]), name


def test_an_empty_record_of_the_newest_checkpoint_names_the_newest_complete_one(tmp_path: Path) -> None:
    for step in (3, 12, 13):
        (tmp_path / f"global_step_{step}").mkdir()
    for step in (3, 12):
        (tmp_path / f"global_step_{step}" / "data.pt").touch()
    (tmp_path / TRACKER).write_text("")
    repair_tracker(tmp_path)
    assert (tmp_path / TRACKER).read_text() == "12"


def test_a_record_that_names_a_step_is_kept(tmp_path: Path) -> None:
    (tmp_path / TRACKER).write_text("7")
    repair_tracker(tmp_path)
    assert (tmp_path / TRACKER).read_text() == "7"


def test_without_a_complete_checkpoint_a_run_begins_at_the_first_step(tmp_path: Path) -> None:
    (tmp_path / TRACKER).write_text("")
    repair_tracker(tmp_path)
    assert not (tmp_path / TRACKER).exists()


def _run(cluster: Cluster, folder: Path, attempt: int, *, kill_after: int | None = None, delay_s: float = 0) -> None:
    """Run to the end, or until ``delay_s`` after the given step, then kill every process of the run."""
    metrics, output = folder / f"metrics-{attempt}.jsonl", folder / f"output-{attempt}.txt"
    arguments = command("tiny-memagent-dapo-cpu.yaml", folder, steps=STEPS, changes=CHANGES)
    process = start(arguments, metrics, output, cluster.environment)
    if kill_after is None:
        finish(process, output, timeout_s=TIMEOUT_S)
        return
    deadline = time.monotonic() + TIMEOUT_S
    while process.poll() is None and not _reached(metrics, output, kill_after):
        assert time.monotonic() < deadline, output.read_text("utf-8", "replace")[-4000:]
        time.sleep(0.05)
    time.sleep(delay_s)  # the moment of the kill, not a wait for something
    assert process.poll() is None, output.read_text("utf-8", "replace")[-4000:]
    killed = [*cluster.workers(), psutil.Process(process.pid)]
    for each in killed:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()
    psutil.wait_procs(killed, timeout=60)


def _reached(metrics: Path, output: Path, step: int) -> bool:
    """Whether the step is logged; before the first one, whether training has begun."""
    if step == 0:
        return b"Training Progress" in output.read_bytes()
    return any(each >= step for each in steps_of(metrics))  # the step itself may have been saved and not logged


def _weights(folder: Path) -> dict[str, Any]:
    file = folder / "checkpoints" / f"global_step_{STEPS}" / "actor" / "model_world_size_1_rank_0.pt"
    state = cast(dict[str, Any], torch.load(file, weights_only=False))
    return {name: getattr(weight, "full_tensor", lambda w=weight: w)() for name, weight in state.items()}
