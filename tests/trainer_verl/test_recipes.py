"""Recipes: every one composes against verl's own configuration and fits its profile and its GPU."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

from memloop.profiles import load_profile
from tests.fakes.published_sources import write_memagent, write_memreread
from tests.trainer_verl.serving import SERVING
from trainer.estimate.memory import memory_of
from trainer.rollout.command import train
from trainer.rollout.consistency import contradictions
from trainer.rollout.recipe import Composed, RecipeError, load_recipe
from trainer.rollout.sizes import run_of
from trainer.rollout.train import join_cluster

RECIPES = sorted(Path("trainer/recipes").glob("*.yaml"))
ON_GPUS = [recipe for recipe in RECIPES if not recipe.stem.endswith("-cpu")]
TINY = Path("trainer/recipes/tiny-memagent-cpu.yaml")
SEVEN_B = Path("trainer/recipes/memagent-7b.yaml")

PUBLISHED = ("memagent-7b", "memagent-14b", "memreread-4b")


@cache
def composed_of(recipe: Path) -> Composed:
    """The recipe, composed once for all tests that only read it."""
    return load_recipe(recipe)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_composes_against_verls_schema(recipe: Path) -> None:
    config = composed_of(recipe).config
    assert config.trainer.v1.trainer_mode == "memloop"
    assert config.actor_rollout_ref.model.path


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_fits_its_profile_and_its_rows(recipe: Path) -> None:
    composed = composed_of(recipe)
    config = composed.config
    assert contradictions(composed) == []
    assert composed.settings.profile_hash == composed.settings.loaded().content_hash
    assert config.data.train_batch_size % composed.settings.updates == 0


@pytest.mark.parametrize("recipe", ON_GPUS, ids=lambda path: path.stem)
def test_a_recipe_fits_the_gpus_that_it_names(recipe: Path) -> None:
    composed = composed_of(recipe)
    assert memory_of(run_of(composed), composed.assumptions).fits


DAPO = Path("trainer/recipes/memagent-7b-dapo.yaml")
FILTER = "algorithm.filter_groups"


@pytest.mark.parametrize(
    ("file", "overrides", "reason"),
    [
        (SEVEN_B, ["memloop.objective=gspo"], "gspo has actor.policy_loss.loss_mode=gspo, not vanilla"),
        (SEVEN_B, ["memloop.objective=gspo"], "gspo has actor.loss_agg_mode=seq-mean-token-mean, not token-mean"),
        (SEVEN_B, ["memloop.objective=dr-grpo"], "dr-grpo has actor.loss_agg_mode=seq-mean-token-sum-norm"),
        (
            SEVEN_B,
            ["memloop.objective=dr-grpo", "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum-norm"],
            "actor.loss_scale_factor is missing",
        ),
        (SEVEN_B, ["memloop.objective=dapo"], "dapo replaces groups of equal rewards"),
        (DAPO, [f"{FILTER}.max_num_gen_batches=0"], "run for ever"),
        (DAPO, [f"{FILTER}.metric=acc"], "rollouts have one reward: reward"),
        (
            Path("trainer/recipes/memreread-4b.yaml"),
            [f"{FILTER}.enable=true", f"{FILTER}.max_num_gen_batches=2"],
            "from which this objective learns",
        ),
    ],
)
def test_a_recipe_that_is_not_the_objective_it_names_is_reported(file: Path, overrides: list[str], reason: str) -> None:
    assert any(reason in told for told in contradictions(load_recipe(file, overrides)))


@pytest.mark.parametrize("part", ["grpo", "dapo", "dr-grpo", "gspo"])
def test_an_objectives_part_makes_a_recipe_of_it(part: str, tmp_path: Path) -> None:
    parts = [str(SEVEN_B.absolute()), str((SEVEN_B.parent / "parts" / f"{part}.yaml").absolute())]
    (tmp_path / "own.yaml").write_text(f"extends: {parts}\nverl: {{}}\n", "utf-8")
    composed = load_recipe(tmp_path / "own.yaml")
    assert (composed.settings.objective, contradictions(composed)) == (part, [])


@pytest.mark.parametrize(
    ("recipe", "kind"),
    [
        ("memagent-7b", "memagent"),
        ("memagent-14b", "memagent"),
        ("memagent-slime-7b", "memagent"),
        ("memagent-slime-7b-code", "memagent"),
        ("memreread-4b", "memreread"),
    ],
)
def test_a_published_run_takes_the_checkpoints_own_prompts(
    recipe: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = write_memreread(write_memagent(tmp_path / "checkout"))
    profile = tmp_path / "profile"
    importing = ["profile", "import", kind, "--from", str(checkout), "--to", str(profile)]
    subprocess.run([SERVING, "-m", "inference.main", *importing], check=True, capture_output=True)
    train(["--recipe", f"trainer/recipes/{recipe}.yaml", "--check", f"memloop.profile={profile}"])
    assert capsys.readouterr().err == ""


def test_replies_are_limited_by_use_and_the_profile_stays_the_same() -> None:
    recipe = load_recipe(Path("trainer/recipes/memagent-slime-7b.yaml"))
    assert recipe.settings.loaded().prompts["answer"].sampling.max_tokens == 256
    assert recipe.settings.profile_hash == load_profile("default").content_hash
    with pytest.raises(RecipeError, match="reply_tokens"):
        load_recipe(SEVEN_B, ["memloop.reply_tokens={poem: 9}"])


def test_the_code_of_slime_trains_otherwise_than_its_card() -> None:
    card, code = (composed_of(Path(f"trainer/recipes/memagent-slime-7b{end}.yaml")) for end in ("", "-code"))
    assert (card.settings.train_final, card.settings.reward, card.settings.updates) == (False, "f1", 1)
    assert (code.settings.train_final, code.settings.reward, code.settings.updates) == (True, "strict", 8)
    optimiser = code.config.actor_rollout_ref.actor.optim
    assert (optimiser.weight_decay, list(optimiser.betas), optimiser.lr_warmup_steps) == (0.1, [0.9, 0.98], 0)
    assert code.config.actor_rollout_ref.actor.loss_agg_mode == "seq-mean-token-mean"


def test_reading_runs_keep_the_order_of_their_rows() -> None:
    assert [composed_of(Path(f"trainer/recipes/{name}.yaml")).config.data.shuffle for name in PUBLISHED] == [False] * 3


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("data.max_prompt_length=6000", "prompts of default"),
        ("data.max_response_length=512", "replies of default"),
        ("actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192", "a row has up to 9216"),
        ("actor_rollout_ref.rollout.max_model_len=8192", "a row has up to 9216"),
        ("actor_rollout_ref.rollout.n=1", "teaches nothing"),
        ("actor_rollout_ref.rollout.tensor_model_parallel_size=3", "do not divide into engines"),
        ("memloop.updates=5000", "updates=5000"),
        ("memloop.live_rows_only=true", "the KL loss"),
        ("actor_rollout_ref.actor.fsdp_config.model_dtype=bf16", "steps of lr=1e-06 are mostly rounded away"),
        ("actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent", "the loop tool_agent"),
    ],
)
def test_contradictory_numbers_are_reported(override: str, reason: str) -> None:
    assert any(reason in told for told in contradictions(load_recipe(SEVEN_B, [override])))


def test_sglang_must_have_room_for_the_longest_reply() -> None:
    sglang = Path("trainer/recipes/memagent-7b-sglang.yaml")
    exact = contradictions(load_recipe(sglang, ["actor_rollout_ref.rollout.max_model_len=9216"]))
    assert exact == ["rollout.max_model_len=9216: with SGLang verl cuts the longest reply by a token: 9217"]


def test_a_profile_of_another_content_than_the_recipe_names_is_refused() -> None:
    with pytest.raises(RecipeError, match="the run is for 0123"):
        load_recipe(TINY, ["memloop.profile_hash='0123'"])


def test_a_running_cluster_does_not_get_the_settings_of_a_local_ray() -> None:
    config = load_recipe(TINY).config
    join_cluster(config)
    assert set(config.ray_kwargs.ray_init) == {"runtime_env"}


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
def test_an_unknown_key_is_an_error(override: str, reason: str) -> None:
    with pytest.raises(RecipeError, match=reason):
        load_recipe(TINY, [override])


def test_a_recipe_inherits_from_the_one_that_it_extends(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("verl: {data: {train_batch_size: 5, seed: 1}}", "utf-8")
    (tmp_path / "own.yaml").write_text("extends: base.yaml\nverl: {data: {seed: 2}}", "utf-8")
    data = load_recipe(tmp_path / "own.yaml").config.data
    assert (data.train_batch_size, data.seed) == (5, 2)


def test_of_several_that_it_extends_a_later_one_goes_over_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "first.yaml").write_text("verl: {data: {train_batch_size: 5, seed: 1}}", "utf-8")
    (tmp_path / "second.yaml").write_text("verl: {data: {seed: 2}}", "utf-8")
    (tmp_path / "own.yaml").write_text("extends: [first.yaml, second.yaml]\nverl: {}", "utf-8")
    data = load_recipe(tmp_path / "own.yaml").config.data
    assert (data.train_batch_size, data.seed) == (5, 2)


def test_overrides_change_what_the_estimate_assumes_and_the_environment() -> None:
    composed = load_recipe(SEVEN_B, ["estimate.gpu=h200", "environment.WANDB_MODE=online"])
    assert (composed.assumptions.gpu, composed.environment["WANDB_MODE"]) == ("h200", "online")


def test_a_run_that_keeps_its_checkpoints_has_verl_call_us(tmp_path: Path) -> None:
    config = load_recipe(TINY, [f"memloop.checkpoints={tmp_path.as_uri()}"]).config
    assert config.trainer.checkpoint_callback_class == "trainer.rollout.kept.Kept"
    assert load_recipe(TINY).config.trainer.checkpoint_callback_class is None


def test_a_file_that_is_no_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"missing\.yaml"):
        load_recipe(tmp_path / "missing.yaml")
