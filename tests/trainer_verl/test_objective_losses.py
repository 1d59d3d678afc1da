"""Each objective's loss as verl computes it from the recipe's parts, against figures worked out by hand.

Two rollouts of one prompt: the first, right, has the conversations a (two tokens) and b (one token), the second, wrong,
has c (four tokens). The rewards 1 and 0 are ±0.5 off their mean, and ±0.707107 by the deviation of a sample.
"""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.utils.config import omega_conf_to_dataclass

from trainer.rollout.advantages import Rows, advantages_of, trained_mask
from trainer.rollout.recipe import Composed, load_recipe

PARTS = Path("trainer/recipes/parts").absolute()
RECIPES = PARTS.parent
LENGTHS = (2, 1, 4)
LONGEST = max(LENGTHS)


def recipe_of(folder: Path, part: str) -> Composed:
    """MemAgent 7B with a part over it; ``-`` for the published run itself."""
    own = [] if part == "-" else [str(PARTS / f"{part}.yaml")]
    (folder / "own.yaml").write_text(f"extends: {[str(RECIPES / 'memagent-7b.yaml'), *own]}\nverl: {{}}\n", "utf-8")
    return load_recipe(folder / "own.yaml")


def loss_of(recipe: Composed, ratios: list[list[float]]) -> float:
    """The loss of the three conversations, given each token's ratio of the new policy to the old."""
    mask = torch.tensor([[1.0] * length + [0.0] * (LONGEST - length) for length in LENGTHS])
    facts = [{"final": False, "limit": 100, "nodes": 1}, {"final": True, "limit": 100, "nodes": 1}]
    facts.append({"final": True, "limit": 100, "nodes": 2})
    rows = Rows(["p_0_0", "p_0_1", "p_1_0"], facts, torch.tensor([1.0, 1.0, 0.0]), mask)
    actor: Any = omega_conf_to_dataclass(recipe.config.actor_rollout_ref.actor)
    in_loss = trained_mask(rows, recipe.settings)
    actor.global_batch_info.update(
        dp_size=1,
        batch_num_tokens=int(in_loss.sum()),
        global_batch_size=int(in_loss.any(-1).sum()),
        loss_scale_factor=actor.loss_scale_factor,
    )
    new = torch.tensor([[math.log(ratio) for ratio in row] + [0.0] * (LONGEST - len(row)) for row in ratios])
    loss, _ = get_policy_loss_fn(actor.policy_loss.loss_mode)(
        old_log_prob=torch.zeros_like(new),
        log_prob=new,
        advantages=advantages_of(rows, recipe.settings),
        response_mask=in_loss,
        loss_agg_mode=actor.loss_agg_mode,
        config=actor,
    )
    return float(loss)


MIXED = [[1.1, 1.5], [0.5], [1.0, 1.0, 0.5, 5.0]]
"""Inside the clip range, above it, below it, and beyond the dual clip's 3."""


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        # per token, clipped at 0.8 and 1.2, times A = ±0.5: a 0.55 + 0.6, b 0.25, c −0.5 − 0.5 − 0.4 − 1.5 (3 at most)
        ("-", -(0.55 + 0.6 + 0.25 - 2.9) / 7),
        # A = ±0.707107, the mean of each conversation first: (1.15 + 0.5 − (1 + 1 + 0.8 + 3) / 4) / 3
        ("grpo", -0.707106 * ((1.1 + 1.2) / 2 + 0.5 - 5.8 / 4) / 3),
        # A as GRPO's, clipped at 0.8 and 1.28, per token
        ("dapo", -0.707106 * (1.1 + 1.28 + 0.5 - 5.8) / 7),
        # A = ±0.5, each conversation's sum over the longest reply's 1,024 tokens
        ("dr-grpo", -0.5 * (1.1 + 1.2 + 0.5 - 5.8) / 3 / 1024),
    ],
    ids=["memagent", "grpo", "dapo", "dr-grpo"],
)
def test_the_loss_is_the_published_one(part: str, expected: float, tmp_path: Path) -> None:
    assert loss_of(recipe_of(tmp_path, part), MIXED) == pytest.approx(expected, abs=1e-6)


def test_gspo_has_one_ratio_for_a_conversation_and_clips_that(tmp_path: Path) -> None:
    ratios = [[1.01, 0.9905], [1.01], [1.0, 1.0, 1.0, 1.0004]]
    # geometric means: a 1.0002 (inside, though neither of its tokens is), b 1.01 (clipped at 1.0004), c 1.0001
    c = 1.0004**0.25
    expected = -0.707106 * (math.sqrt(1.01 * 0.9905) + 1.0004 - c) / 3
    assert loss_of(recipe_of(tmp_path, "gspo"), ratios) == pytest.approx(expected, abs=1e-6)


def test_gspo_clips_below_its_own_lower_bound(tmp_path: Path) -> None:
    # A < 0 for c: its ratio 0.99 is clipped at 0.9997
    expected = -0.707106 * (1.0 + 1.0 - 0.9997) / 3
    assert loss_of(recipe_of(tmp_path, "gspo"), [[1.0, 1.0], [1.0], [0.99] * 4]) == pytest.approx(expected, abs=1e-6)


def test_the_amortised_loss_shares_an_advantage_among_turns_and_leaves_the_answer_out() -> None:
    recipe = load_recipe(RECIPES / "memagent-slime-7b.yaml")
    # A = 0.707106 / 2 turns on a alone, whose two tokens are the mean; clipped at 1.3
    assert loss_of(recipe, MIXED) == pytest.approx(-0.353553 * (1.1 + 1.3) / 2, abs=1e-6)


def test_the_rereading_loss_shares_one_among_the_right_and_minus_one_among_the_wrong() -> None:
    recipe = load_recipe(RECIPES / "memreread-4b.yaml")
    # one right and one wrong: ±1, less the share of α = 0.05 that no step reward fills
    expected = -0.95 * (1.1 + 1.2 + 0.5 - 1.0 - 1.0 - 0.8 - 3.0) / 7
    assert loss_of(recipe, MIXED) == pytest.approx(expected, abs=1e-6)
