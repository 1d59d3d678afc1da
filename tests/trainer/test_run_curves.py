"""The curves that a run keeps and draws while it trains."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch

from trainer.rollout.curves import FIGURE, LOG, Curves
from trainer.rollout.step_metrics import rewards_by_turns

REAL = [
    json.loads(line) for line in (Path(__file__).parent / "golden/verl_steps.jsonl").read_text("utf-8").splitlines()
]
"""Two steps of a real run on verl."""
OURS = {
    "memloop/reward": 0.5,
    "memloop/reward_turns/3-4": 0.25,
    "memloop/reward_turns/5-8": 0.75,
    "memloop/missed": 0.1,
    "memloop/forgot": 0.02,
    "memloop/took_anothers": 0.03,
    "memloop/invented": 0.04,
    "memloop/live_groups": 0.5,
    "val-core/memloop/tiny/memagent/acc/mean@1": 0.8,
}


def texts(folder: Path) -> list[str]:
    root = ET.fromstring((folder / FIGURE).read_text("utf-8"))
    return [text for element in root.iter() if element.tag.endswith("text") for text in element.itertext()]


def lines(folder: Path) -> list[str]:
    """The drawn lines, each as its points."""
    root = ET.fromstring((folder / FIGURE).read_text("utf-8"))
    return [element.attrib["points"] for element in root.iter() if element.tag.endswith("polyline")]


def test_the_figure_has_every_curve_of_a_real_step_with_its_newest_value(tmp_path: Path) -> None:
    curves = Curves(tmp_path)
    for entry in REAL:
        curves.add(entry["step"], {**entry["data"], **OURS})
    newest = REAL[-1]["data"]
    for label, value in (
        ("rollouts", 0.5),
        ("held out", 0.8),
        ("3-4", 0.25),
        ("5-8", 0.75),
        ("to the start", newest["actor/kl_loss"]),
        ("to the rollouts", newest["actor/ppo_kl"]),
        ("of a token", newest["actor/entropy"]),
        ("ratio", newest["actor/pg_clipfrac"]),
        ("mean", newest["response_length/mean"]),
        ("forgot", 0.02),
        ("took another's", 0.03),
        ("invented", 0.04),
    ):
        assert f"{label} {value:.3g}" in texts(tmp_path)


def test_each_step_extends_every_line_by_a_point(tmp_path: Path) -> None:
    curves = Curves(tmp_path)
    for step in (1, 2, 3):
        curves.add(step, {"memloop/reward": step / 10})
        (only,) = lines(tmp_path)
        assert len(only.split()) == step


def test_a_curve_that_rises_is_drawn_rising_from_left_to_right(tmp_path: Path) -> None:
    curves = Curves(tmp_path)
    for step, reward in ((1, 0.2), (2, 0.4), (3, 0.8)):
        curves.add(step, {"memloop/reward": reward})
    places = [tuple(map(float, point.split(","))) for point in lines(tmp_path)[0].split()]
    assert places == sorted(places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)


def test_a_panel_without_figures_is_marked(tmp_path: Path) -> None:
    Curves(tmp_path).add(1, {"memloop/reward": 0.5})
    assert texts(tmp_path).count("not measured by this run") == 7


def test_values_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    Curves(tmp_path).add(1, {"memloop/reward": float("nan"), "actor/entropy": None, "actor/ppo_kl": "high"})
    assert lines(tmp_path) == []
    assert json.loads((tmp_path / LOG).read_text("utf-8")) == {"step": 1, "data": {}}


def test_a_resumed_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """The step after the checkpoint was lost with the run, and so was half a line."""
    first = Curves(tmp_path)
    for step in (1, 2, 3):
        first.add(step, {"memloop/reward": step / 10})
    with (tmp_path / LOG).open("a") as log:
        log.write('{"step": 4, "da')
    second = Curves(tmp_path)
    second.resume(2)
    second.add(3, {"memloop/reward": 0.9})
    kept = [json.loads(line) for line in (tmp_path / LOG).read_text("utf-8").splitlines()]
    assert [(each["step"], each["data"]["memloop/reward"]) for each in kept] == [(1, 0.1), (2, 0.2), (3, 0.9)]
    assert len(lines(tmp_path)[0].split()) == 3


def test_a_step_that_was_saved_and_not_logged_is_in_the_curve_once(tmp_path: Path) -> None:
    """A checkpoint comes before the rest of the step's figures; a run may die between them."""
    first = Curves(tmp_path)
    first.add(1, {"memloop/reward": 0.1})
    first.add(1, {"memloop/reward": 0.1, "response_length/mean": 8.0})
    first.add(2, {"memloop/reward": 0.2})
    second = Curves(tmp_path)
    second.resume(2)
    second.add(3, {"memloop/reward": 0.3})
    kept = [json.loads(line) for line in (tmp_path / LOG).read_text("utf-8").splitlines()]
    assert [each["step"] for each in kept] == [1, 2, 3]
    assert kept[0]["data"] == {"memloop/reward": 0.1, "response_length/mean": 8.0}


def test_a_step_that_is_added_again_has_one_line_on_disk_at_once(tmp_path: Path) -> None:
    curves = Curves(tmp_path)
    curves.add(1, {"memloop/reward": 0.1})
    for figures in ({"memloop/reward": 0.2}, {"memloop/reward": 0.2, "response_length/mean": 8.0}):
        curves.add(2, figures)
        kept = [json.loads(line) for line in (tmp_path / LOG).read_text("utf-8").splitlines()]
        assert [each["step"] for each in kept] == [1, 2]
        assert kept[-1]["data"] == figures
    assert {"rollouts 0.2", "mean 8"} <= set(texts(tmp_path))


def test_a_run_killed_at_any_moment_leaves_one_whole_line_for_each_step(tmp_path: Path) -> None:
    endless = f"""
from itertools import count
from pathlib import Path
from trainer.rollout.curves import Curves
curves, many = Curves(Path({str(tmp_path)!r})), {{f"figure/{{number}}": 0.5 for number in range(2000)}}
for step in count(1):
    curves.add(step, many)
    curves.add(step, many)
"""
    run = subprocess.Popen([sys.executable, "-c", endless], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        deadline = time.monotonic() + 120
        while len(found := _kept_steps(tmp_path)) < 12:
            assert found == list(range(1, len(found) + 1))
            assert run.poll() is None
            assert time.monotonic() < deadline
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    found = _kept_steps(tmp_path)
    assert found == list(range(1, len(found) + 1))


def _kept_steps(folder: Path) -> list[int]:
    """The steps on disk. Raises JSONDecodeError when a line is not whole."""
    file = folder / LOG
    return [json.loads(line)["step"] for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def test_a_run_from_the_start_drops_the_curves_of_an_earlier_one(tmp_path: Path) -> None:
    Curves(tmp_path).add(7, {"memloop/reward": 0.1})
    again = Curves(tmp_path)
    again.resume(0)
    again.add(1, {"memloop/reward": 0.9})
    assert len((tmp_path / LOG).read_text("utf-8").splitlines()) == 1


@pytest.mark.parametrize(("turns", "span"), [(1, "1"), (2, "2"), (3, "3-4"), (4, "3-4"), (5, "5-8"), (33, "33-64")])
def test_rewards_are_told_by_the_number_of_conversations(turns: int, span: str) -> None:
    found = rewards_by_turns(torch.tensor([1.0, 0.0, 1.0]), torch.tensor([turns, turns, 1000]))
    assert found == {f"memloop/reward_turns/{span}": 0.5, "memloop/reward_turns/513-1024": 1.0}
