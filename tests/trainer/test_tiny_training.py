"""The network is Qwen3, and a few steps on it learn."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.trainer.tiny_world import examples, profile, tokenizer
from trainer.tiny.batches import BUCKETS, Batch, Encoder, Feed, Source, collate
from trainer.tiny.card_data import TRAINING, TrainingLog, read_training
from trainer.tiny.command import main
from trainer.tiny.curriculum import FULL, HARD, PHASES, Phases, mix_at
from trainer.tiny.export import export, weights_of
from trainer.tiny.network import Shape, TinyQwen3, rope_tables
from trainer.tiny.prose import book, sprinkled
from trainer.tiny.recipe import BUDGETS, make
from trainer.tiny.tokenizer import SPECIAL, TAGS, plain_words, prompt_lines
from trainer.tiny.train import Run, hardest, loss_of
from trainer.tiny.wiring import LOOK_BACK, wire


def source() -> Source:
    return Source(profile(), book("train"), Encoder(tokenizer()))


def vocabulary() -> int:
    return tokenizer().get_vocab_size()


@pytest.mark.slow
def test_twenty_steps_lower_the_loss() -> None:
    budget = replace(BUDGETS["smoke"], steps=20, shape=Shape(vocabulary()), eval_every=10, eval_rows=4)
    run = Run(source(), source(), budget, seed=0, device="cpu", compiled=False)
    first, last = run.reports()
    assert (first.step, last.step) == (10, 20)
    assert last.loss < first.loss - 0.5


def test_a_step_of_the_robust_budget_trains_a_batch_however_many_turns_were_drawn() -> None:
    robust = BUDGETS["robust"]
    budget = replace(robust, shape=Shape(vocabulary()), steps=2, batch_tokens=1024, eval_every=2, eval_rows=4)
    (report,) = Run(source(), source(), budget, seed=0, device="cpu", compiled=False).reports()
    assert report.step == 2
    assert 2 * 704 <= report.tokens <= 2 * 1024  # two rows of the longest fill 704


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


def test_a_run_continues_from_a_checkpoint_with_its_tokenizer_and_records_it(tmp_path: Path) -> None:
    start, out = tmp_path / "start", tmp_path / "out"
    torch.manual_seed(0)
    network = TinyQwen3(Shape(vocabulary())).bfloat16()  # as the files hold it
    export(start, network.state_dict(), network.shape, tokenizer())
    assert all(torch.equal(weights_of(start)[name], w.float()) for name, w in network.state_dict().items())
    log = TrainingLog(
        budget="cpu", seed=0, device="cpu", profile="p", parameters=1, chunk_tokens=256, steps=5, batch_tokens=9
    )
    (start / TRAINING).write_text(log.model_dump_json(), "utf-8")
    make(out, budget="smoke", seed=1, device="cpu", start=start, compiled=False)
    assert read_training(out).start == log
    assert (out / "tokenizer.json").read_bytes() == (start / "tokenizer.json").read_bytes()
    assert "5 steps" in (card := (out / "README.md").read_text("utf-8"))
    assert "--start DIR --seed 1 --budget smoke`: 8 steps" in card


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


def test_reading_turns_come_in_batches_of_their_own_and_several_times_as_large() -> None:
    feed = Feed(source(), random.Random(5), batch_tokens=2048, reads_of=3)
    for batch in (feed.next(FULL) for _ in range(8)):
        rows, length = batch.ids.shape
        reads = {kind.startswith("read/") for kind in batch.kinds}
        assert (reads, rows) in (({True}, 2048 // length * 3), ({False}, 2048 // length))


def test_some_rows_of_a_batch_are_those_rows_with_their_targets() -> None:
    rows = Encoder(tokenizer()).rows(examples(6, seed=2))
    batch, kept = collate(rows, BUCKETS[-1]), [0, 3, 4]
    some, alone = batch.only(torch.tensor(kept)), collate([rows[number] for number in kept], BUCKETS[-1])
    assert some.kinds == alone.kinds
    for name in ("ids", "at", "goal", "weight", "row"):
        assert torch.equal(getattr(some, name), getattr(alone, name)), name


def test_the_hardest_rows_are_those_with_the_least_sure_token() -> None:
    torch.manual_seed(0)
    network = TinyQwen3(Shape(vocabulary(), hidden=32, layers=1, heads=1, intermediate=32))
    batch = Feed(source(), random.Random(5), batch_tokens=2048, reads_of=2).next(FULL)
    each = [batch.only(torch.tensor([number])) for number in range(len(batch.kinds))]
    worst = [max(float(loss_of(network, replace(one, weight=only)).detach()) for only in _units(one)) for one in each]
    hard = hardest(network, batch, 2)
    first, second = sorted(sorted(range(len(worst)), key=worst.__getitem__)[-2:])
    assert torch.equal(hard.ids, batch.ids[[first, second]])


def _units(batch: Batch) -> Iterator[torch.Tensor]:
    """Weights that leave one target after the other."""
    return iter(torch.eye(len(batch.goal)))


def test_sprinkled_prose_is_the_prose_and_then_the_prose_with_words_that_it_never_had() -> None:
    prose, words = book("train"), plain_words(tokenizer())
    text = sprinkled(random.Random(0), prose, words).text
    assert text.startswith(prose.text)
    again = text[len(prose.text) :].split()
    assert 0.3 < sum(one == other for one, other in zip(again, prose.text.split(), strict=False)) / len(again) < 0.9
    assert {"482", "Marta", "Oslo"} <= {*words} & {*again}
    assert not {*SPECIAL, *TAGS, *prompt_lines(profile())} & {*words}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["--budget", "robust"], "--start", id="robust goes on from a checkpoint"),
        pytest.param(["--start", "nowhere"], "nowhere holds no checkpoint", id="there is none"),
    ],
)
def test_a_run_that_cannot_go_on_is_refused_before_it_begins(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "--out", str(tmp_path / "out"), *arguments])
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("phases", [PHASES, HARD])
@pytest.mark.parametrize("progress", [0.0, 0.05, 0.3, 0.99, 1.0])
def test_the_shares_of_every_phase_sum_to_one(progress: float, phases: Phases) -> None:
    assert sum(mix_at(progress, phases).shares.values()) == pytest.approx(1.0)
    assert phases[-1][0] == 1.0
