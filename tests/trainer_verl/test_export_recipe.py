"""What an export says of the recipe that made it."""

from pathlib import Path

import pytest

from memloop.profiles import load_profile
from trainer.rollout.command import trained_by
from trainer.rollout.export_record import ExportError

RECIPES = Path("trainer/recipes")
HERE = "trainer.default_local_dir="


@pytest.mark.parametrize(
    ("recipe", "objective"), [("tiny-memagent-cpu.yaml", "grpo"), ("tiny-memreread-cpu.yaml", "rea-grpo")]
)
def test_it_names_objective_reward_and_data_of_the_run(recipe: str, objective: str, tmp_path: Path) -> None:
    overrides = [f"{HERE}{tmp_path}", "memloop.reward=f1", "data.train_files=[a.parquet,b.parquet]"]
    told = trained_by(RECIPES / recipe, overrides, tmp_path / "global_step_2", load_profile("tiny"))
    assert (told.recipe, told.objective, told.reward, told.data) == (
        recipe,
        objective,
        "f1",
        ("a.parquet", "b.parquet"),
    )


def test_a_memory_writers_reward_is_of_decisions(tmp_path: Path) -> None:
    recipe, checkpoint = RECIPES / "tiny-memreader-cpu.yaml", tmp_path / "global_step_2"
    told = trained_by(recipe, [f"{HERE}{tmp_path}", "memloop.decisions=graded"], checkpoint, load_profile("tiny"))
    assert told.reward == "graded"


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="give the overrides of the run too"):
        trained_by(RECIPES / "tiny-memagent-cpu.yaml", [], tmp_path / "global_step_2", load_profile("tiny"))


def test_another_profile_than_the_runs_is_refused(tmp_path: Path) -> None:
    recipe, checkpoint = RECIPES / "tiny-memagent-cpu.yaml", tmp_path / "global_step_2"
    with pytest.raises(ExportError, match=r"trains with the profile tiny@1:.* not with default@1:"):
        trained_by(recipe, [f"{HERE}{tmp_path}"], checkpoint, load_profile("default"))
