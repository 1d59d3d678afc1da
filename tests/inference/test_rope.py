"""Longer prompts by YaRN: what the engine gets, and when the launcher refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from inference.engines import BUILDERS
from inference.machine import EngineName
from inference.settings import LauncherSettings
from tests.fakes import vllm_asked
from tests.inference.test_plan import GPU, plan_of, refusal

TINY = Path(__file__).parents[2] / "services" / "inference" / "models" / "memloop-tiny"


def _configured(checkpoint: Path, **values: object) -> Path:
    (checkpoint / "config.json").write_text(json.dumps(values))
    return checkpoint


def test_a_factor_multiplies_the_window_that_may_be_asked_for(checkpoint: Path) -> None:
    settings = LauncherSettings(model=str(checkpoint), profile="tiny", serve_max_model_len=16384, serve_yarn_factor=4.0)
    assert plan_of(settings).max_model_len == 16384


def test_a_window_beyond_the_stretched_positions_is_refused(checkpoint: Path) -> None:
    settings = LauncherSettings(model=str(checkpoint), profile="tiny", serve_max_model_len=16385, serve_yarn_factor=4.0)
    assert "has 16384 positions, fewer than the 16385" in refusal(settings)


def test_a_window_beyond_the_positions_is_refused_with_the_way_out(checkpoint: Path) -> None:
    settings = LauncherSettings(model=str(checkpoint), profile="tiny", serve_max_model_len=9000)
    told = refusal(settings)
    assert "has 4096 positions, fewer than the 9000" in told
    assert "MEMLOOP_SERVE_YARN_FACTOR stretches them" in told


@pytest.mark.parametrize(
    ("engine", "flag"), [("vllm", "--hf-overrides"), ("sglang", "--json-model-override-args")], ids=["vLLM", "SGLang"]
)
def test_engines_get_the_checkpoints_own_base_and_positions(engine: EngineName, flag: str, checkpoint: Path) -> None:
    _configured(checkpoint, max_position_embeddings=4096, rope_theta=5e5)
    settings = LauncherSettings(model=str(checkpoint), profile="tiny", engine=engine, serve_yarn_factor=2.5)
    argv = BUILDERS[engine](plan_of(settings, GPU)).argv
    assert json.loads(argv[argv.index(flag) + 1]) == {
        "max_position_embeddings": 10240,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 5e5,
            "factor": 2.5,
            "original_max_position_embeddings": 4096,
        },
    }


@pytest.mark.slow
def test_vllm_accepts_the_longer_window_of_a_real_checkpoint() -> None:
    settings = LauncherSettings(model=str(TINY), profile="tiny", serve_max_model_len=16384, serve_yarn_factor=4.0)
    override = dict(plan_of(settings).config_override or {})
    command = [sys.executable, vllm_asked.__file__, "window", str(TINY), "16384", "{}", json.dumps(override)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert json.loads(printed.splitlines()[-1]) == [None, 16384]


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2}}, "stretches the positions"),
        (
            {"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "yarn"}},
            "stretches the positions already",
        ),
        ({}, "has no max_position_embeddings"),
    ],
    ids=["before transformers 5", "transformers 5", "no positions"],
)
def test_a_checkpoint_that_cannot_be_stretched_is_refused(
    config: dict[str, object], told: str, checkpoint: Path
) -> None:
    _configured(checkpoint, **config)
    settings = LauncherSettings(model=str(checkpoint), profile="tiny", serve_yarn_factor=4.0)
    assert told in refusal(settings)


def test_a_model_on_a_hub_needs_its_folder_for_it() -> None:
    settings = LauncherSettings(model="Qwen/Qwen3-8B", serve_yarn_factor=4.0)
    assert "set MEMLOOP_MODEL_PATH to its folder" in refusal(settings, GPU)
