"""The rule's arithmetic, and the entry's form."""

from pathlib import Path

import pytest

from inference.registry import read_registry
from memloop.scoring.comparison import compare, paired_bootstrap, paired_interval
from memloop.scoring.strict import same_answer
from trainer.gate.comparison import rows_needed
from trainer.gate.registry_entry import entry
from trainer.gate.scores import scores_of
from trainer.rollout.tasks import DecideTask


def test_a_paired_interval_is_bonett_and_prices() -> None:
    """By hand: 10 pairs, 3 gained, 1 lost; with both made-up pairs 4 and 2 of 12, mean 1/6, variance 1/2 - 1/36."""
    low, high = paired_interval([1.0] * 3 + [-1.0] + [0.0] * 6)
    half = 1.96 * ((1 / 2 - 1 / 36) / 12) ** 0.5
    assert (low, high) == pytest.approx((1 / 6 - half, 1 / 6 + half))


def test_agreement_on_a_few_rows_is_no_certainty() -> None:
    low, high = paired_interval([0.0] * 5)
    assert -low == high == pytest.approx(0.3960, abs=1e-4)


def test_a_paired_bootstrap_is_about_the_normal_interval_of_many_differences() -> None:
    low, high = paired_bootstrap([1.0] * 200 + [-1.0] * 100 + [0.0] * 700)
    half = 1.96 * ((0.3 - 0.01) / 1000) ** 0.5
    assert (low, high) == pytest.approx((0.1 - half, 0.1 + half), abs=0.005)
    assert (low, high) == paired_bootstrap([1.0] * 200 + [-1.0] * 100 + [0.0] * 700)


def test_the_interval_of_a_gain_holds_both_kinds() -> None:
    pairs = [(1.0, 0.0)] * 30 + [(0.0, 1.0)] * 10 + [(0.5, 0.5)] * 60
    differences = [mine - theirs for mine, theirs in pairs]
    low, high = compare("x", pairs).gain_interval
    for inner_low, inner_high in (paired_interval(differences), paired_bootstrap(differences)):
        assert low <= inner_low < inner_high <= high


@pytest.mark.parametrize(("margin", "rows"), [(0.05, 54), (0.02, 137), (0.5, 4)])
def test_the_rows_that_a_margin_needs_are_just_enough(margin: float, rows: int) -> None:
    assert rows_needed(margin) == rows
    assert compare("x", [(1.0, 1.0)] * rows).passes(margin)
    assert not compare("x", [(1.0, 1.0)] * (rows - 1)).passes(margin)


def test_a_comparison_counts_the_rows_that_differ() -> None:
    found = compare("f1", [(1.0, 0.5), (0.2, 0.2), (0.0, 1.0), (0.5, 0.4)])
    assert (found.candidate, found.incumbent, found.better, found.worse) == pytest.approx((0.425, 0.525, 2, 1))
    assert found.gain == pytest.approx(-0.1)
    assert not found.passes(0.0)


def test_a_gain_passes_without_a_margin_only_outside_its_interval() -> None:
    assert compare("x", [(1.0, 0.0)] * 6 + [(1.0, 1.0)] * 122).passes(0.0)
    assert not compare("x", [(1.0, 0.0)] * 5 + [(1.0, 1.0)] * 123).passes(0.0)


def test_an_answer_without_its_box_is_compared_as_strictly() -> None:
    assert same_answer("new  York", ["Lima", "New York"]) == 1.0
    assert same_answer("New York.", ["New York"]) == same_answer("", [""]) == 0.0


@pytest.mark.parametrize(
    ("said", "exact"),
    [
        pytest.param(("add", "B", "A"), 1.0, id="in another order"),
        pytest.param(("add", "A", "B", "B"), 0.0, id="one twice"),
        pytest.param(("add", "A"), 0.0, id="one of two"),
        pytest.param(("ignore", "A", "B"), 0.0, id="another action"),
    ],
)
def test_the_memories_of_a_decision_have_no_order(said: tuple[str, ...], exact: float) -> None:
    task = DecideTask.of_row(
        {
            "extra_info": {"conversation": [{"role": "user", "content": "x"}]},
            "reward_model": {"ground_truth": ["add", "A", "B"]},
        }
    )
    assert scores_of(task, said)["exact"] == exact


def test_inference_reads_any_name_and_folder_that_an_entry_may_have(tmp_path: Path) -> None:
    row = {"profile": "default", "strict_tools": True, "max_model_len": 8, "shape": _SHAPE}
    source = 'hf/"quoted" \\ naïve é\x7f\t模型'
    (tmp_path / "models.toml").write_text(entry(row, name="org/tiny.v1:20", source=source, profile="/p q"), "utf-8")
    card = read_registry(tmp_path / "models.toml")["org/tiny.v1:20"]
    assert (card.source, card.profile, card.strict_tools, card.max_model_len) == (source, "/p q", True, 8)
    assert card.shape is not None
    assert card.shape.model_dump() == _SHAPE


_SHAPE = {"parameters": 10, "layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 4}
