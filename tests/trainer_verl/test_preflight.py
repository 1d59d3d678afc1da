"""What is checked before a run takes anything: rows, checkpoint, machine. A mismatch names both sides."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from transformers import AutoTokenizer

from tests.dialogues.scripted import TINY
from tests.trainer_verl.rows import row_of
from trainer.data import schemas
from trainer.data.parquet import write_parquet
from trainer.data.rows import AgentName
from trainer.rollout.check_checkpoint import check_checkpoint
from trainer.rollout.check_machine import Machine, check_machine
from trainer.rollout.check_rows import check_rows
from trainer.rollout.loop_rows import LoopRows
from trainer.rollout.recipe import Composed, load_recipe

RECIPES = Path("trainer/recipes")
RECIPE = RECIPES / "tiny-memagent-cpu.yaml"
MODEL = "actor_rollout_ref.model.path"


def rows_file(folder: Path, *loops: AgentName) -> Path:
    """A Parquet file with one row of each loop."""
    file = folder / f"{'-'.join(loops)}.parquet"
    schema = schemas.WRITING if "memreader" in loops else schemas.READING
    write_parquet([row_of(loop) for loop in loops], file, schema)
    return file


def recipe_on(file: Path, *overrides: str, recipe: Path = RECIPE) -> Composed:
    files = [f"data.train_files={file}", f"data.val_files={file}", "data.train_batch_size=1"]
    return load_recipe(recipe, [*files, *overrides])


def test_rows_of_the_recipes_loop_are_taken(tmp_path: Path) -> None:
    assert list(check_rows(recipe_on(rows_file(tmp_path, "memagent")))) == []


def test_rows_of_another_loop_are_refused_with_both_sides_named(tmp_path: Path) -> None:
    recipe = recipe_on(rows_file(tmp_path, "memagent"), recipe=RECIPES / "memreread-4b.yaml")
    reasons = list(check_rows(recipe))
    assert len(reasons) == 2
    assert all("its rows are for memagent, the recipe trains memreread" in reason for reason in reasons)


def test_a_recipe_that_names_several_loops_takes_their_rows(tmp_path: Path) -> None:
    file = rows_file(tmp_path, "memagent", "memreread")
    assert any("are for memreread" in reason for reason in check_rows(recipe_on(file)))
    assert list(check_rows(recipe_on(file, "memloop.loops=[memreread]"))) == []


def test_an_agent_of_the_users_own_takes_rows_of_any_loop(tmp_path: Path) -> None:
    recipe = recipe_on(rows_file(tmp_path, "memreread"), "memloop.agent=examples.agents.tool_user:solve")
    assert list(check_rows(recipe)) == []


def test_memreread_trains_on_files_of_its_own() -> None:
    reread = load_recipe(RECIPES / "memreread-4b.yaml").config.data
    assert reread.train_files != load_recipe(RECIPES / "memagent-7b.yaml").config.data.train_files


@pytest.mark.parametrize("name", ["memagent-7b", "memagent-14b", "memreread-4b"])
def test_passes_and_validation_are_the_published_scripts(name: str) -> None:
    config = load_recipe(RECIPES / f"{name}.yaml").config
    sampling = config.actor_rollout_ref.rollout.val_kwargs
    assert (config.trainer.total_epochs, config.trainer.test_freq, config.trainer.val_before_train) == (30, 5, True)
    assert (sampling.n, sampling.do_sample, sampling.temperature, sampling.top_p) == (4, True, 1.0, 0.7)


def test_a_missing_file_is_named() -> None:
    assert any(
        "nowhere.parquet: there is no such file" in each for each in check_rows(recipe_on(Path("nowhere.parquet")))
    )


def test_a_file_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_text("text", "utf-8")
    assert any("not readable as Parquet" in each for each in check_rows(recipe_on(tmp_path / "rows.parquet")))


def test_rows_of_another_shape_are_refused_with_the_column(tmp_path: Path) -> None:
    row = {**row_of("memagent"), "context": ""}
    write_parquet([row], tmp_path / "rows.parquet", schemas.READING)
    assert any("not memagent's (context)" in each for each in check_rows(recipe_on(tmp_path / "rows.parquet")))


def test_rows_without_verls_columns_are_refused(tmp_path: Path) -> None:
    write_parquet([], tmp_path / "rows.parquet", schemas.CONVERSATION)
    reasons = list(check_rows(recipe_on(tmp_path / "rows.parquet")))
    assert any("have no prompt, reward_model" in each for each in reasons)


def test_fewer_rows_than_a_batch_are_refused(tmp_path: Path) -> None:
    recipe = recipe_on(rows_file(tmp_path, "memagent"), "data.train_batch_size=16")
    assert any("1 rows, but a batch has data.train_batch_size=16" in each for each in check_rows(recipe))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of the tiny model."""
    return Path(shutil.copytree(TINY, tmp_path / "model"))


def test_the_shipped_model_fits_its_recipe() -> None:
    assert list(check_checkpoint(load_recipe(RECIPE))) == []


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda model: (model / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda model: (model / "model.safetensors").unlink(), "has no weights"),
        (
            lambda model: changed(model / "config.json", max_position_embeddings=512),
            "window has 512 tokens, the recipe's rows have up to 1024",
        ),
        (
            lambda model: (model / "export.json").write_text(json.dumps(RECORD), "utf-8"),
            "was trained with the profile default@1:0123, the recipe has tiny@",
        ),
    ],
    ids=["tokenizer", "weights", "window", "profile"],
)
def test_a_checkpoint_that_does_not_fit_is_refused(spoil: Callable[[Path], Any], reason: str, model: Path) -> None:
    spoil(model)
    assert any(reason in told for told in check_checkpoint(load_recipe(RECIPE, [f"{MODEL}={model}"])))


RECORD = {
    **dict.fromkeys(("started_from", "dtype", "tools_hash", "tokenizer_sha256", "weights_sha256"), "x"),
    "step": 1,
    "profile": "default@1:0123",
    "profile_hash": "0123",
}


def changed(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


def test_a_profile_that_breaks_the_tokenizers_control_tokens_is_refused(tmp_path: Path) -> None:
    profile = Path(shutil.copytree("packages/memloop/memloop/profiles/default", tmp_path / "profile"))
    template = next(profile.rglob("read*"))
    template.write_text(template.read_text("utf-8") + "<|im_end|>", "utf-8")
    recipe = load_recipe(RECIPE, [f"memloop.profile={profile}"])
    assert any("control tokens <|im_end|>" in told for told in check_checkpoint(recipe))


@pytest.mark.parametrize(("path", "reason"), [("./nowhere", "no such folder"), ("Nobody/nothing", "HF_HUB_OFFLINE")])
def test_a_checkpoint_that_is_not_there_is_refused(path: str, reason: str) -> None:
    assert any(reason in told for told in check_checkpoint(load_recipe(RECIPE, [f"{MODEL}={path}"])))


def test_a_folder_with_a_run_of_another_model_is_refused(model: Path, tmp_path: Path) -> None:
    saved = tmp_path / "run" / "global_step_5" / "actor" / "huggingface"
    saved.mkdir(parents=True)
    (tmp_path / "run" / "latest_checkpointed_iteration.txt").write_text("5", "utf-8")
    shutil.copyfile(model / "config.json", saved / "config.json")
    recipe = load_recipe(RECIPE, [f"{MODEL}={model}", f"trainer.default_local_dir={tmp_path / 'run'}"])
    assert list(check_checkpoint(recipe)) == []
    changed(saved / "config.json", hidden_size=7)
    assert any("hidden_size 7 there and" in told for told in check_checkpoint(recipe))


GOOD = Machine(devices=lambda: 8, installed=lambda _: True, free_bytes=lambda _: 10**13)


def on_gpus(*overrides: str) -> Composed:
    return load_recipe(RECIPES / "memreread-4b.yaml", overrides)


def test_a_machine_that_has_everything_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert list(check_machine(on_gpus(), GOOD)) == []


@pytest.mark.parametrize(
    ("machine", "override", "reason"),
    [
        (Machine(lambda: 2, lambda _: True, lambda _: 10**13), [], "n_gpus_per_node=8, but this machine has 2"),
        (GOOD, ["trainer.nnodes=4"], "RAY_ADDRESS is not set"),
        (
            Machine(lambda: 8, lambda name: name != "vllm", lambda _: 10**13),
            [],
            "rollout.name=vllm needs the package vllm",
        ),
        (Machine(lambda: 8, lambda name: name != "wandb", lambda _: 10**13), [], "trainer.logger=wandb needs"),
        (Machine(lambda: 8, lambda _: True, lambda _: 10**9), [], "has 1.0 GB free, its checkpoints need"),
        (GOOD, ["trainer.default_local_dir=/dev/null/run"], "cannot be written"),
    ],
)
def test_a_machine_that_lacks_something_is_refused(
    machine: Machine, override: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert any(reason in told for told in check_machine(on_gpus(*override), machine))


def dataset(folder: Path, *, max_prompt_length: int) -> Any:
    long, short = row_of("memreader"), row_of("memreader")
    turn = {"role": "user", "content": "word " * 400}
    long["extra_info"] = {**cast(dict[str, Any], long["extra_info"]), "conversation": [turn]}
    write_parquet([long, short], folder / "rows.parquet", schemas.WRITING)
    recipe = recipe_on(folder / "rows.parquet", recipe=RECIPES / "tiny-memreader-cpu.yaml")
    config = recipe.config.data
    config.max_prompt_length = max_prompt_length
    tokenizer: Any = cast(Any, AutoTokenizer).from_pretrained(TINY)
    return LoopRows(str(folder / "rows.parquet"), tokenizer, config)


def test_conversations_too_long_for_the_run_are_dropped_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(dataset(tmp_path, max_prompt_length=300)) == 1
    assert "dropped 1 of 2 rows" in capsys.readouterr().out


def test_a_run_whose_conversations_are_all_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="all 2 rows are longer"):
        dataset(tmp_path, max_prompt_length=10)
