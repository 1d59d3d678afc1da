"""Recipes: every one composes against verl's own configuration, and verl finds it possible."""

import subprocess
import sys
from pathlib import Path

import pytest

from trainer.rollout.recipe import RecipeError, load_recipe

RECIPES = sorted(Path("trainer/recipes").glob("*.yaml"))
TINY = Path("trainer/recipes/tiny-memagent-cpu.yaml")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_composes_against_verls_schema(recipe: Path) -> None:
    config = load_recipe(recipe).config
    assert config.trainer.v1.trainer_mode == "memloop"
    assert config.actor_rollout_ref.model.path


@pytest.mark.parametrize("recipe", [TINY], ids=lambda path: path.stem)
def test_verl_accepts_a_recipe_as_it_does_before_a_run(recipe: Path) -> None:
    command = [sys.executable, "-m", "trainer", "train", "--recipe", str(recipe), "--check"]
    subprocess.run(command, check=True, capture_output=True, timeout=240)


def test_overrides_change_verls_settings_and_ours() -> None:
    config = load_recipe(TINY, ["data.train_batch_size=3", "memloop.updates=2", "+ray_kwargs.ray_init.local_mode=true"])
    assert (config.config.data.train_batch_size, config.config.memloop.updates) == (3, 2)
    assert config.config.ray_kwargs.ray_init.local_mode is True


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("data.train_batchsize=3", "no data.train_batchsize"),
        ("memloop.update=2", "memloop|update"),
        ("memloop.objective=ppo", "objective"),
        ("nonsense", "KEY=VALUE"),
    ],
)
def test_a_key_that_nobody_knows_is_an_error(override: str, reason: str) -> None:
    with pytest.raises(RecipeError, match=reason):
        load_recipe(TINY, [override])


def test_a_recipe_takes_over_what_the_one_that_it_extends_says(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("verl: {data: {train_batch_size: 5, seed: 1}}", "utf-8")
    (tmp_path / "own.yaml").write_text("extends: base.yaml\nverl: {data: {seed: 2}}", "utf-8")
    data = load_recipe(tmp_path / "own.yaml").config.data
    assert (data.train_batch_size, data.seed) == (5, 2)


def test_a_file_that_is_no_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"missing\.yaml"):
        load_recipe(tmp_path / "missing.yaml")
