"""The network is Qwen3, and a few steps on it learn."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.trainer.tiny_world import profile, tokenizer
from trainer.tiny.batches import BUCKETS, Encoder, Feed, Source
from trainer.tiny.curriculum import FULL, PHASES, mix_at
from trainer.tiny.export import export
from trainer.tiny.network import Shape, TinyQwen3, rope_tables
from trainer.tiny.prose import book
from trainer.tiny.recipe import BUDGETS
from trainer.tiny.train import Run
from trainer.tiny.wiring import LOOK_BACK, wire


def source() -> Source:
    return Source(profile(), book("train"), Encoder(tokenizer()))


def vocabulary() -> int:
    return tokenizer().get_vocab_size()


def test_twenty_steps_lower_the_loss() -> None:
    budget = replace(BUDGETS["smoke"], shape=Shape(vocabulary()), eval_every=10)
    run = Run(source(), source(), budget, seed=0, device="cpu", compiled=False)
    first, last = run.reports()
    assert (first.step, last.step) == (10, 20)
    assert last.loss < first.loss - 0.5


def test_the_exported_files_are_the_same_network_to_transformers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = TinyQwen3(Shape(vocabulary()))
    wire(network)
    export(tmp_path, network.state_dict(), network.shape, tokenizer())
    network.bfloat16().float()  # the files hold bfloat16
    served = AutoModelForCausalLM.from_pretrained(str(tmp_path), dtype=torch.float32)
    ids = torch.randint(0, vocabulary(), (2, 40))
    with torch.no_grad():
        ours, theirs = network(ids, torch.arange(80)), served(ids).logits.reshape(80, -1)
    torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-3)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 16 * 2**20


def test_the_wired_heads_look_back_by_their_offsets() -> None:
    torch.manual_seed(0)
    network = TinyQwen3(Shape(vocabulary()))
    wire(network)
    layer, seq = network.model.block(0), 24
    x = layer.input_layernorm(network.model.embed_tokens(torch.randint(0, vocabulary(), (1, seq))))
    q, k = layer.self_attn.queries_and_keys(x, *rope_tables(network.shape, seq))
    best = (q[0, :, -1:] @ k[0].transpose(1, 2)).argmax(-1).flatten()
    assert tuple(seq - 1 - position for position in best.tolist()) == LOOK_BACK


def test_batches_are_full_and_the_same_for_a_seed() -> None:
    feeds = [Feed(source(), random.Random(5), batch_tokens=2048) for _ in range(2)]
    for _ in range(3):
        one, other = (feed.next(FULL) for feed in feeds)
        assert torch.equal(one.ids, other.ids)
        rows, length = one.ids.shape
        assert length in BUCKETS
        assert rows == 2048 // length


@pytest.mark.parametrize("progress", [0.0, 0.05, 0.3, 0.99, 1.0])
def test_the_shares_of_every_phase_sum_to_one(progress: float) -> None:
    assert sum(mix_at(progress).shares.values()) == pytest.approx(1.0)
    assert PHASES[-1][0] == 1.0
