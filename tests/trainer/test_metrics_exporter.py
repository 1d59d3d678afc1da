"""A run's figures as Prometheus gets them. The golden file is the log of two steps of a real run on verl."""

import json
import os
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from trainer.metrics_exporter import RunLog

STEPS = (Path(__file__).parent / "golden/verl_steps.jsonl").read_text().splitlines(keepends=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "steps.jsonl"


@pytest.fixture
def registry(file: Path) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(RunLog(file))
    return registry


def value(registry: CollectorRegistry, name: str) -> float | None:
    return registry.get_sample_value("trainer_value", {"name": name})


def test_every_figure_of_a_real_step_is_served(file: Path, registry: CollectorRegistry) -> None:
    file.write_text(STEPS[0])
    data = json.loads(STEPS[0])["data"]
    assert {name: value(registry, name) for name in data} == data
    assert registry.get_sample_value("trainer_step") == 1
    assert registry.get_sample_value("trainer_logged_timestamp_seconds") == file.stat().st_mtime


def test_a_step_that_is_added_takes_the_place_of_the_one_before(file: Path, registry: CollectorRegistry) -> None:
    file.write_text(STEPS[0])
    registry.get_sample_value("trainer_step")
    with file.open("a") as lines:
        lines.write(STEPS[1])
    assert registry.get_sample_value("trainer_step") == 2
    assert value(registry, "timing_s/step") == json.loads(STEPS[1])["data"]["timing_s/step"]


def test_half_a_line_waits_for_its_other_half(file: Path, registry: CollectorRegistry) -> None:
    file.write_text(STEPS[0] + STEPS[1][:200])
    assert registry.get_sample_value("trainer_step") == 1
    with file.open("a") as lines:
        lines.write(STEPS[1][200:])
    assert registry.get_sample_value("trainer_step") == 2


def test_a_run_that_has_not_begun_has_no_figures(registry: CollectorRegistry) -> None:
    assert str(registry.get_sample_value("trainer_step")) == "nan"
    assert value(registry, "actor/loss") is None


def test_a_truncated_file_is_read_from_its_start(file: Path, registry: CollectorRegistry) -> None:
    file.write_text("".join(STEPS))
    registry.get_sample_value("trainer_step")
    file.write_text('{"step": 7, "data": {"actor/loss": 0.5}}\n')
    assert registry.get_sample_value("trainer_step") == 7
    assert (value(registry, "actor/loss"), value(registry, "actor/lr")) == (0.5, None)


def test_values_that_are_not_finite_and_bad_lines_are_ignored(file: Path, registry: CollectorRegistry) -> None:
    file.write_text(
        '{"step": 3, "data": {"actor/loss": null, "note": "x", "flag": true}}\nnot json\n[1]\n{"step": "4"}\n'
    )
    os.utime(file, (0, 0))
    assert registry.get_sample_value("trainer_step") == 3
    assert str(value(registry, "actor/loss")) == "nan"
    assert (value(registry, "note"), value(registry, "flag")) == (None, None)
