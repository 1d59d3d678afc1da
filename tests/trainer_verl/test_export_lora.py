"""Adapters trained on a CPU, in a checkpoint of verl's layout: the export answers what the base gets wrong."""

import json
import shutil
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from memloop.profiles import load_profile
from tests.dialogues.scripted import TINY
from trainer.rollout.export import export_checkpoint
from trainer.rollout.export_record import ExportError
from trainer.rollout.export_weights import Adapter, compare, merge_adapter, shard

ASKED = "<|im_start|>user\nWhat is the locker code?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
ANSWER = "\\boxed{731}<|im_end|>"
TOKENIZER: Any = cast(Any, AutoTokenizer).from_pretrained(TINY)
PROFILE = load_profile("tiny")


def loaded(folder: Path) -> Any:
    return cast(Any, AutoModelForCausalLM).from_pretrained(folder, dtype=torch.float32)


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


def answer_of(model: Any) -> str:
    """The model's greedy reply."""
    prompt = torch.tensor([ids(ASKED)])
    made = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False)
    return TOKENIZER.decode(made[0, prompt.shape[1] :])


def logits_of(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids(ASKED + ANSWER)])).logits


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, torch.Tensor]:
    """A checkpoint with adapters that learned one answer, and the logits of base and adapter together."""
    torch.manual_seed(0)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model: Any = get_peft_model(loaded(TINY), LoraConfig(r=8, lora_alpha=16, target_modules=targets))
    rate = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(rate, lr=5e-3)
    whole, length = torch.tensor([ids(ASKED + ANSWER)]), len(ids(ASKED))
    labels = whole.clone()
    labels[:, :length] = -100
    for _ in range(60):
        optimizer.zero_grad()
        model(whole, labels=labels).loss.backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("run") / "global_step_3"
    actor = folder / "actor"
    (actor / "huggingface").mkdir(parents=True)
    model.eval()
    torch.save(model.state_dict(), actor / "model_world_size_1_rank_0.pt")
    (actor / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 2, "world_size": 1}), "utf-8")
    meta = {"r": 8, "lora_alpha": 16, "task_type": "CAUSAL_LM"}
    (actor / "lora_train_meta.json").write_text(json.dumps(meta), "utf-8")
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copyfile(TINY / file, actor / "huggingface" / file)
    return folder, logits_of(model)


@pytest.fixture(scope="module")
def exported(trained: tuple[Path, torch.Tensor], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "model"
    export_checkpoint(trained[0], TINY, out, PROFILE)
    return out


def test_the_export_gives_the_trained_answer_that_the_base_does_not(exported: Path) -> None:
    assert answer_of(loaded(exported)) == ANSWER
    assert "731" not in answer_of(loaded(TINY))


def test_the_exported_logits_are_those_of_base_and_adapter(exported: Path, trained: tuple[Path, torch.Tensor]) -> None:
    adapted, base = trained[1], logits_of(loaded(TINY))
    away = (logits_of(loaded(exported)) - adapted).norm()
    assert away < 0.02 * adapted.norm()
    assert away < 0.05 * (adapted - base).norm()


def test_the_export_holds_whole_weights_and_no_adapter(exported: Path) -> None:
    assert not (exported / "lora_adapter").exists()
    with safe_open(exported / "model.safetensors", framework="pt") as weights:
        assert not any("lora" in name for name in weights.keys())  # noqa: SIM118 -- not a mapping


@pytest.fixture
def merged(trained: tuple[Path, torch.Tensor], tmp_path: Path) -> Path:
    """What verl's merger leaves: the base weights, and the adapter beside them."""
    folder = Path(shutil.copytree(TINY, tmp_path / "merged"))
    state: dict[str, torch.Tensor] = torch.load(trained[0] / "actor" / "model_world_size_1_rank_0.pt")
    adapter = {name.replace(".default.", "."): weight for name, weight in state.items() if "lora_" in name}
    (folder / "lora_adapter").mkdir()
    from safetensors.torch import save_file

    save_file(adapter, folder / "lora_adapter" / "adapter_model.safetensors")
    targets = sorted({name.split(".")[-3] for name in adapter})
    config = LoraConfig(r=8, lora_alpha=16, target_modules=targets, task_type="CAUSAL_LM")
    config.save_pretrained(str(folder / "lora_adapter"))
    return folder


def test_weights_are_cut_into_files_with_an_index(merged: Path, trained: tuple[Path, torch.Tensor]) -> None:
    assert merge_adapter(merged, shard_bytes=1 << 19)
    index = json.loads((merged / "model.safetensors.index.json").read_text("utf-8"))
    files = sorted(file.name for file in merged.glob("*.safetensors"))
    assert len(files) > 2
    assert set(index["weight_map"].values()) == set(files)
    assert (logits_of(loaded(merged)) - trained[1]).norm() < 0.02 * trained[1].norm()
    shard(merged)
    assert [file.name for file in merged.glob("*.safetensors")] == ["model.safetensors"]


def changed(folder: Path, **values: object) -> None:
    file = folder / "lora_adapter" / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


@pytest.mark.parametrize(
    ("values", "reason"),
    [({"lora_alpha": 0}, "lora_train_meta.json is missing"), ({"use_dora": True}, "use_dora")],
    ids=["no alpha", "dora"],
)
def test_an_adapter_that_cannot_be_merged_is_refused(values: dict[str, Any], reason: str, merged: Path) -> None:
    changed(merged, **values)
    with pytest.raises(ExportError, match=reason):
        merge_adapter(merged)


def test_an_adapter_of_another_model_is_refused(merged: Path) -> None:
    from safetensors.torch import load_file, save_file

    file = merged / "lora_adapter" / "adapter_model.safetensors"
    save_file({name.replace("layers.0", "layers.77"): weight for name, weight in load_file(file).items()}, file)
    with pytest.raises(ExportError, match=r"layers\.77.* which the model does not have"):
        merge_adapter(merged)


ONE, TWO = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.1])


def test_weights_without_the_adapters_effect_are_refused() -> None:
    compare(base=ONE, adapted=TWO, exported=TWO + 1e-4)
    with pytest.raises(ExportError, match="do not compute what base and adapter compute"):
        compare(base=ONE, adapted=TWO, exported=ONE)
    with pytest.raises(ExportError, match="lost in the rounding"):
        compare(base=ONE, adapted=ONE + 1e-3, exported=ONE)


def test_a_weight_is_the_base_and_the_scaled_product() -> None:
    a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])
    found = Adapter({"w.weight": (a, b)}, scale=0.5).merged("w.weight", torch.ones(2, 2))
    assert found.tolist() == [[2.5, 4.0], [3.0, 5.0]]
