"""Packing, training, resuming, decoding and merging, on a random network of the small model's architecture."""

# torch's and transformers' own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
import json
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.func import functional_call
from transformers import AutoModelForCausalLM, AutoTokenizer

from memloop_small.base import BaseError, make_base
from memloop_small.merge import LoraShape, merge
from tests.trainer.small.small_network import random_llama
from trainer.small.generate import Decoder
from trainer.small.gpu import GpuRun, train_on_gpu
from trainer.small.kinds import English
from trainer.small.mix import Sources, draw_group
from trainer.small.network import LoraLinear, SmallLlama
from trainer.small.packing import Batch, Encoder, Row, Tokens, packed_whole
from trainer.small.recipe import SmallSft, load_recipe
from trainer.small.reinforce import ended_reply, reward
from trainer.small.sample import Sample
from trainer.small.train import drawn_rows, new_run, reply_loss

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_llama(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def encoder(base: Path) -> Encoder:
    return Encoder(AutoTokenizer.from_pretrained(base))


def taught(network: SmallLlama) -> SmallLlama:
    """Give the adapters something to add."""
    generator = torch.Generator().manual_seed(2)
    for weights in network.adapters().values():
        weights.data = torch.randn(weights.shape, generator=generator) * 0.1
    return network


def alone(network: SmallLlama, sample: Tokens) -> torch.Tensor:
    row = Row(len(sample))
    row.add([sample])
    return reply_loss(network, Batch.of([row], CPU))


def recipe(base: Path, output: Path, **fields: Any) -> SmallSft:
    held = {"base": base, "output": output, "tokens": 4_000, "rows": 2, "rows_at_once": 1, "row_tokens": 384}
    return SmallSft.model_validate({**held, "warmup_steps": 2, **fields})


def test_the_network_is_transformers_llama(base: Path) -> None:
    ids = torch.arange(5, 45)[None]
    network = SmallLlama.load(base, dtype=torch.float32)
    mask = torch.full((40, 40), -1e9).triu(1)[None]
    theirs: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    with torch.no_grad():
        ours = network.logits(network(ids, torch.arange(40)[None], mask))
        assert torch.allclose(ours, theirs(ids).logits, atol=1e-4)


@pytest.mark.slow
def test_compiled_layers_learn_the_same(base: Path, tmp_path: Path) -> None:
    losses = list[list[float]]()
    for fixed in (False, True):
        folder = tmp_path / str(fixed)
        new_run(recipe(base, folder, steps=3, fixed_shapes=fixed)).train()
        losses.append([json.loads(line)["loss"] for line in (folder / "log.jsonl").read_text().splitlines()])
    assert losses[0] == pytest.approx(losses[1], rel=0.01)


def test_a_layer_computes_the_same_in_training_and_its_gradients_are_right() -> None:
    torch.manual_seed(3)
    layer = LoraLinear(5, 4, LoraShape(2, 4)).double()
    layer.weight.data.normal_()
    x = torch.randn(2, 3, 5, dtype=torch.double, requires_grad=True)
    learned = tuple(torch.randn_like(held, requires_grad=True) for held in (layer.lora_A, layer.lora_B))

    def layer_of(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return functional_call(layer, {"lora_A": a, "lora_B": b}, (x,))

    with torch.no_grad():
        decoded = layer_of(x, *learned)
    assert torch.allclose(layer_of(x, *learned), decoded)
    assert torch.autograd.gradcheck(layer_of, (x, *learned))


@pytest.mark.parametrize("task", ["write", "relate", "answer"])
def test_packed_samples_lose_as_much_as_each_alone(task: str, base: Path, encoder: Encoder) -> None:
    network = taught(SmallLlama.load(base, dtype=torch.float32))
    samples = [encoder.tokens(sample) for sample in draw_group(task, English("train"), Random(2), Sources())]
    rows = packed_whole([samples[:2], samples[2:]], 2_000)
    with torch.no_grad():
        together = reply_loss(network, Batch.of(rows, CPU))
        padded = reply_loss(network, Batch.of(rows, CPU, fixed=True))
        each = sum(alone(network, sample) for sample in samples)
    assert len(rows[0].ids) < sum(map(len, samples))
    assert together.item() == pytest.approx(float(each), rel=1e-4)
    assert padded.item() == pytest.approx(together.item(), rel=1e-5)


def test_only_the_reply_and_its_end_are_learned(encoder: Encoder) -> None:
    sample = encoder.tokens(draw_group("write", English("train"), Random(1), Sources())[0])
    row = Row(len(sample))
    row.add([sample])
    assert [target for target in row.targets if target >= 0] == sample.reply


def test_replies_decoded_together_are_those_of_transformers(base: Path) -> None:
    prompts = [list(range(5, 5 + length)) for length in (9, 30, 17)]
    model: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    made = Decoder(SmallLlama.load(base, dtype=torch.float32))(prompts, end=0, most=12)
    for prompt, reply in zip(prompts, made, strict=True):
        theirs = model.generate(
            torch.tensor([prompt]), max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0
        )
        assert reply == theirs[0, len(prompt) :].tolist()


def test_a_merged_folder_gives_the_logits_of_base_and_adapter(base: Path, tmp_path: Path) -> None:
    network = taught(SmallLlama.load(base, dtype=torch.float32))
    adapter = tmp_path / "adapter.safetensors"
    save_file({name: held.detach() for name, held in network.adapters().items()}, adapter)
    merge(base, adapter, tmp_path / "merged")
    ids, mask = torch.arange(5, 25)[None], torch.full((20, 20), -1e9).triu(1)[None]
    theirs: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32)
    with torch.no_grad():
        ours = network.logits(network(ids, torch.arange(20)[None], mask))
        assert torch.allclose(ours, theirs(ids).logits, atol=1e-3)


def test_an_adapter_of_another_rank_is_refused(base: Path, tmp_path: Path) -> None:
    held = SmallLlama.load(base).adapters()
    adapter = tmp_path / "adapter.safetensors"
    save_file({name: held[name].detach()[:8].contiguous() for name in held}, adapter)
    with pytest.raises(ValueError, match="does not fit"):
        merge(base, adapter, tmp_path / "merged")


def test_a_file_of_weights_with_another_hash_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "weights.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(BaseError, match="SHA-256"):
        make_base(file, tmp_path / "base")


def test_a_run_that_was_stopped_ends_as_one_that_was_not(base: Path, tmp_path: Path) -> None:
    whole = new_run(recipe(base, tmp_path / "whole")).train()
    new_run(recipe(base, tmp_path / "parts", steps=2)).train()
    resumed = new_run(recipe(base, tmp_path / "parts")).train()
    assert (resumed.steps, resumed.tokens) == (whole.steps, whole.tokens)
    ends = [load_file(tmp_path / name / "adapter-fp32.safetensors") for name in ("whole", "parts")]
    assert all(torch.allclose(ends[0][name], ends[1][name], atol=1e-6) for name in ends[0])


def test_a_run_begins_from_an_adapter_and_resumes_from_its_own_checkpoint(base: Path, tmp_path: Path) -> None:
    new_run(recipe(base, tmp_path / "first")).train()
    adapter = tmp_path / "first" / "adapter-fp32.safetensors"
    second = recipe(base, tmp_path / "second", begin_from=adapter, learning_rate=1e-9, seed=1)
    new_run(second).train()
    begun, ended = (load_file(tmp_path / name / "adapter-fp32.safetensors") for name in ("first", "second"))
    assert all(torch.allclose(begun[name], ended[name], atol=1e-5) for name in begun)
    adapter.unlink()
    assert new_run(second).progress.steps > 0


def test_training_lowers_the_loss(base: Path, tmp_path: Path) -> None:
    new_run(recipe(base, tmp_path, tokens=12_000, learning_rate=1e-2)).train()
    losses = [json.loads(line)["loss"] for line in (tmp_path / "log.jsonl").read_text("utf-8").splitlines()]
    assert sum(losses[-3:]) < sum(losses[:3])


def test_rows_go_on_from_where_a_run_left_them(base: Path, tmp_path: Path, encoder: Encoder) -> None:
    rows = drawn_rows(recipe(base, tmp_path), encoder)
    first = rows(0)
    drawn = [next(first) for _ in range(6)]
    assert next(rows(drawn[3][1])) == drawn[4]


def test_the_rows_of_a_recipe_come_from_its_sources(base: Path, tmp_path: Path, encoder: Encoder) -> None:
    read = {"shares": {"read": 1.0}, "row_tokens": 1_024}
    first = list[list[int]]()
    for crowds in (0.0, 1.0):
        sources = {"of_novels": 0.0, "of_crowds": crowds}
        row, _ = next(drawn_rows(recipe(base, tmp_path, sources=sources, **read), encoder)(0))
        first.append(row.ids)
    assert first[0] != first[1]


def test_the_tasks_get_their_shares_of_the_tokens_in_rows(base: Path, tmp_path: Path, encoder: Encoder) -> None:
    shares = {"write": 0.3, "relate": 0.3, "chat": 0.4}
    rows = drawn_rows(recipe(base, tmp_path, shares=shares, row_tokens=1_024), encoder)
    of = Counter[str]()
    for row, _ in islice(rows(0), 300):
        of.update(row.tasks)
    assert {task: of[task] / of.total() for task in shares} == pytest.approx(shares, abs=0.05)


def test_a_task_that_no_row_holds_is_refused(base: Path, tmp_path: Path, encoder: Encoder) -> None:
    alone = recipe(base, tmp_path, row_tokens=64, shares={"read": 1.0}, sources={"concluded": 0.0})
    with pytest.raises(ValueError, match="120 groups of 'read' do not fill a row of 64 tokens"):
        drawn_rows(alone, encoder)


def test_a_reply_that_was_cut_has_no_end_to_learn() -> None:
    assert ended_reply([1, 2], end=0) == [1, 2, 0]
    assert ended_reply([1] * 96, end=0) == [1] * 96


def test_repeating_all_notes_earns_no_reward() -> None:
    sample = Sample("answer", (), "You live in Oslo.", golds=("Oslo",))
    assert reward(sample, "You live in Oslo.") == 1
    assert reward(sample, "You like tea. You have two cats. You work as a nurse. You live in Oslo.") == 0


def test_a_reward_is_lost_where_a_memory_is_false_of_the_user() -> None:
    sample = Sample("write", (), "Eva's home town: The user's aunt Eva lives in Oslo.", sort="other", golds=("Oslo",))
    assert reward(sample, sample.reply) == 1
    assert reward(sample, "none") == 0
    assert reward(sample, "home town: The user lives in Oslo.") == -1


@pytest.mark.parametrize("name", ["small-sft", "small-anneal"])
def test_a_recipe_in_the_repository_is_valid(name: str) -> None:
    assert load_recipe(Path(f"trainer/recipes/small/{name}.yaml"), ("tokens=5",)).tokens == 5


@pytest.mark.slow
def test_the_training_of_a_gpu_runs_on_a_cpu(base: Path, tmp_path: Path) -> None:
    settings = GpuRun(base, tmp_path, minutes=0.2).dry()
    facts = train_on_gpu(settings)
    assert facts["updates"]
    assert load_file(tmp_path / "adapter.safetensors").keys() == SmallLlama.load(base).adapters().keys()
