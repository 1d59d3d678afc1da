"""A recipe run for real, with TRL, on a CPU: a few steps from random weights, all of them and by LoRA."""

# torch's and transformers' own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from memloop.profiles import load_profile
from trainer.__main__ import main
from trainer.data.parquet import write_parquet
from trainer.data.schemas import CONVERSATION
from trainer.data.world import world_turns

SHIPPED = Path("services/inference/models/memloop-tiny")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sft") / "turns.parquet"
    turns = world_turns(load_profile("tiny"), part="train", seed=0, roles=("answer", "judge"))
    write_parquet(islice(turns, 64), path, CONVERSATION)
    return path


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of random weights with the shipped tokenizer and template."""
    folder = tmp_path_factory.mktemp("fresh")
    tokenizer: Any = AutoTokenizer.from_pretrained(SHIPPED)
    torch.manual_seed(0)
    shape = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        eos_token_id=tokenizer.eos_token_id,
    )
    Qwen3ForCausalLM(shape).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def recipe(folder: Path, model: Path, data: Path, **fields: object) -> Path:
    path = folder / "recipe.yaml"
    held = {
        "model": str(model),
        "train": [str(data)],
        "output": str(folder / "out"),
        "learning_rate": 3e-3,
        "batch": 8,
        "per_device": 8,
        "max_tokens": 512,
        "precision": "fp32",
        "checkpointing": False,
        "save_steps": 3,
    }
    path.write_text(json.dumps(held | fields))
    return path


def trained(path: Path, capsys: pytest.CaptureFixture[str], *overrides: str) -> dict[str, Any]:
    main(["sft", "--recipe", str(path), *overrides])
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_a_run_learns_and_goes_on_where_it_was_stopped(
    tmp_path: Path, fresh: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recipe(tmp_path, fresh, data, epochs=2, held_out=[str(data)])
    first = trained(path, capsys, "steps=6")
    assert (first["steps"], first["examples"], first["too_long"]) == (6, 64, 0)
    assert first["last_loss"] < first["first_loss"] - 0.2
    again = trained(path, capsys, "steps=8")
    assert again["steps"] == 8
    assert again["held_out_loss"] < first["held_out_loss"]
    assert (tmp_path / "out/chat_template.jinja").read_text() == (SHIPPED / "chat_template.jinja").read_text()


def test_a_checkpoint_that_a_kill_left_incomplete_is_passed_over(
    tmp_path: Path, fresh: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recipe(tmp_path, fresh, data)
    trained(path, capsys, "steps=3")
    checkpoints = tmp_path / "out/checkpoints"
    for step, left in ((4, {}), (5, {"trainer_state.json": ""})):  # killed before the last file, and within it
        (checkpoints / f"checkpoint-{step}").mkdir()
        for name, text in left.items():
            (checkpoints / f"checkpoint-{step}" / name).write_text(text)
    assert trained(path, capsys, "steps=6")["steps"] == 6
    state = json.loads((checkpoints / "checkpoint-6/trainer_state.json").read_text())
    assert [entry["step"] for entry in state["log_history"] if "loss" in entry] == [1, 2, 3, 4, 5, 6]


def test_the_run_ends_with_its_epochs_if_these_have_fewer_steps(
    tmp_path: Path, fresh: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recipe(tmp_path, fresh, data, epochs=0.5, batch=16)
    assert trained(path, capsys, "steps=9")["steps"] == 2  # half of the four steps of 64 examples
    assert trained(recipe(tmp_path, fresh, data, output=str(tmp_path / "b")), capsys, "steps=3")["steps"] == 3


def test_lora_leaves_whole_merged_weights(
    tmp_path: Path, fresh: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = trained(recipe(tmp_path, fresh, data, lora={"rank": 4, "alpha": 8}), capsys, "steps=3")
    assert result["last_loss"] < result["first_loss"]
    before, after = (load_file(folder / "model.safetensors") for folder in (fresh, tmp_path / "out"))
    assert set(before) == set(after)
    changed = {name.split(".")[-2] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def test_all_weights_move_at_the_published_rate_though_matrices_are_multiplied_in_bfloat16(
    tmp_path: Path, fresh: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = trained(recipe(tmp_path, fresh, data, precision="bf16", learning_rate=2e-5), capsys, "steps=6")
    last = tmp_path / "out/checkpoints/checkpoint-6/model.safetensors"
    before, after = load_file(fresh / "model.safetensors"), load_file(last)
    every = [name for name in before if name.endswith("_proj.weight")]  # an embedding has gradients for words in sight
    still = sum(int((before[name].to(after[name].dtype) == after[name]).sum()) for name in every)
    share = still / sum(before[name].numel() for name in every)
    print(f"loss {result['first_loss']:.4f} to {result['last_loss']:.4f}; {share:.1%} of the weights never moved")
    assert share < 0.02
    saved = load_file(tmp_path / "out/model.safetensors")
    assert {weights.dtype for weights in saved.values()} == {torch.bfloat16}
    assert not (last.parents[1] / "masters").exists()


def test_the_shipped_model_is_certain_of_the_replies_that_it_was_trained_on(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loss is on the replies alone, after the served prompts: on prompts or prose it would be far above this."""
    result = trained(recipe(tmp_path, SHIPPED, data, learning_rate=1e-9), capsys, "steps=1")
    assert result["first_loss"] < 0.05


def test_data_that_does_not_fit_is_refused(
    tmp_path: Path, fresh: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sft", "--recipe", str(recipe(tmp_path, fresh, data, max_tokens=16))])
    assert ended.value.code == 2
    assert "64 examples are longer than max_tokens" in capsys.readouterr().err
