"""Estimates by hand: a model of round sizes, and the published ones where the launcher knows them too."""

from dataclasses import replace
from pathlib import Path

import pytest

from inference.registry import read_registry
from memloop.profiles import load_profile
from trainer.estimate.assumptions import Assumptions
from trainer.estimate.hardware import GIB
from trainer.estimate.hours import hours_of
from trainer.estimate.memory import Memory, memory_of
from trainer.estimate.report import lines_of, table_row
from trainer.estimate.run import Engine, Loop, Run, Sharding, Updates
from trainer.estimate.shapes import KNOWN, ModelShape, UnknownShape, shape_of
from trainer.estimate.turns import turns_of

SMALL = ModelShape(2, 8, 16, 2, 1, 4, 100, tied=False)
"""A layer: 2·8·8 + 2·8·4 attention, 3·8·16 MLP, 2·8 norms = 592; embeddings 2·800; all 2·592 + 1600 + 8 = 2792."""
FSDP = Sharding(tensor=1, pipeline=1, replicas=4, whole=False, weight_bytes=4)
ALL_PASSES = Updates(micro_tokens=10, recompute=True, reference=True, old=True, adapter_rank=0)
READING = Loop("memagent", load_profile("default"), max_rereads=2, max_searches=4)
NOTHING = Assumptions(logit_bytes=0, runtime_gib=0, sync_gib=0, step_overhead_s=0)


def run(**changes: object) -> Run:
    made = Run(SMALL, 4, FSDP, ALL_PASSES, Engine(1, 0.5, 9216, 256), READING, prompts=2, group=8, epochs=3, steps=None)
    return replace(made, **changes)  # pyright: ignore[reportArgumentType] - each test names fields of its own


def test_the_parameters_of_a_model_follow_from_its_shape() -> None:
    assert (SMALL.layer_parameters, SMALL.embedding_parameters, SMALL.parameters) == (592, 1600, 2792)
    assert SMALL.multiplied == 1992
    assert SMALL.cached_bytes == 2 * 2 * 1 * 4 * 2
    assert SMALL.adapter_parameters(2) == 2 * 2 * (2 * (8 + 8) + 2 * (8 + 4) + 3 * (8 + 16))


@pytest.mark.parametrize(
    ("launchers", "ours"),
    [
        ("RL-MemoryAgent-7B", "Qwen/Qwen2.5-7B-Instruct"),
        ("RL-MemoryAgent-14B", "Qwen/Qwen2.5-14B-Instruct"),
        ("Qwen3-4B", "Qwen/Qwen3-4B"),
        ("Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
    ],
)
def test_shapes_are_those_that_the_launcher_plans_with(launchers: str, ours: str) -> None:
    planned, shape = read_registry()[launchers].shape, KNOWN[ours]
    assert planned is not None
    assert (shape.parameters, shape.layers, shape.kv_heads, shape.head_dim) == (
        planned.parameters,
        planned.layers,
        planned.kv_heads,
        planned.head_dim,
    )


def test_the_shape_of_a_folder_is_that_of_its_configuration() -> None:
    tiny = shape_of("services/inference/models/memloop-tiny")
    assert (tiny.layers, tiny.hidden, tiny.vocabulary, tiny.tied, tiny.normed) == (4, 128, 4096, True, True)


def test_an_unknown_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownShape, match=r"config\.json"):
        shape_of(str(tmp_path))


def test_fsdp_shards_what_stays_and_puts_layers_together_for_a_moment() -> None:
    update = memory_of(run(), NOTHING).update
    assert (update["weights"], update["gradients"], update["optimizer"]) == (2792, 2792, 5584)
    assert update["whole layers"] == 2 * (2 * 592 + 1600) + 4 * (592 + 1600)
    assert update["activations"] == 2 * 10 * (2 * 8 + 4 * 8 + 2 * 3 * 4 + 4 * 16)


def test_padded_rows_cost_their_padding_and_fused_kernels_keep_no_logits() -> None:
    assumed = NOTHING.model_copy(update={"logit_bytes": 14, "padding": 1.5})
    updates = replace(ALL_PASSES, padded=True)
    whole = memory_of(run(updates=updates), assumed).update
    assert whole["logits"] == 15 * 100 * 14
    assert whole["activations"] == 2 * 15 * (2 * 8 + 4 * 8 + 2 * 3 * 4 + 4 * 16)
    fused = memory_of(run(updates=replace(updates, fused=True)), assumed).update
    assert fused["logits"] == 512 * 100 * 20 + 4 * 100 * 8
    adapters = memory_of(run(updates=replace(updates, fused=True, adapter_rank=2)), assumed).update
    assert adapters["logits"] == 512 * 100 * 20


def test_megatron_cuts_weights_and_shards_only_the_optimizer() -> None:
    cut = Sharding(tensor=2, pipeline=1, replicas=2, whole=True, weight_bytes=2)
    memory = memory_of(run(sharding=cut), NOTHING)
    assert (memory.update["weights"], memory.update["gradients"]) == (2792, 5584)
    assert memory.update["optimizer"] == 12 * 2792 / 2 / 2
    assert set(memory.rollout) == {"weights", "gradients", "optimizer", "engine", "weights on their way", "runtime"}


def test_adapters_have_gradients_and_moments_and_the_frozen_weights_have_none() -> None:
    adapters = SMALL.adapter_parameters(2)
    half = replace(FSDP, weight_bytes=2)
    update = memory_of(run(sharding=half, updates=replace(ALL_PASSES, adapter_rank=2)), NOTHING).update
    assert (update["weights"], update["gradients"]) == (2 * 2792 / 4, 2 * adapters / 4)
    assert update["optimizer"] == 4 * adapters / 4
    assert update["whole layers"] == 2 * (2 * 592 + 1600)


def test_without_recomputing_every_layer_keeps_its_own() -> None:
    keeping = run(updates=replace(ALL_PASSES, recompute=False))
    assert memory_of(keeping, NOTHING).update["activations"] == 2 * 10 * 2 * (4 * 8 + 2 * 3 * 4 + 4 * 16)


def test_the_cache_is_what_weights_and_runtime_leave_of_the_engines_share() -> None:
    memory = memory_of(run(), NOTHING)
    assert memory.cache == 40 * GIB - 2 * 2792 - 2 * GIB
    assert memory.cached_rows == memory.cache // (32 * 9216)
    assert memory.fits


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": KNOWN["Qwen/Qwen2.5-14B-Instruct"], "sharding": replace(FSDP, replicas=1)},
        {"engine": Engine(1, 0.01, 9216, 1)},
    ],
    ids=["state-too-large", "no-room-for-a-row"],
)
def test_a_plan_that_does_not_fit_is_reported(changes: dict[str, object]) -> None:
    memory = memory_of(run(**changes), Assumptions())
    assert not memory.fits
    assert "DOES NOT FIT on h100" in "\n".join(lines_of("it", memory, None, Assumptions()))


def test_turns_of_a_read_are_its_chunks_and_the_answer() -> None:
    reads, answer = turns_of(READING, Assumptions(document_tokens=12000, reply_share=0.5))
    assert (reads.count, reads.prompt, reads.reply) == (3, 192 + 64 + 512 + 5000, 512)
    assert (answer.count, answer.prompt, answer.reply) == (1, 192 + 64 + 512, 512)


@pytest.mark.parametrize(("rereads", "judged"), [(1, 2), (2, 2), (9, 2)], ids=["under-the-limit", "at-it", "over-it"])
def test_turns_of_a_reread_are_the_papers(rereads: float, judged: int) -> None:
    """(1 + k)·N + (k + [k < R]) + 2k + 1 with R = 2."""
    turns = {
        turn.kind: turn.count for turn in turns_of(replace(READING, name="memreread"), Assumptions(rereads=rereads))
    }
    taken = min(rereads, 2)
    assert turns == {"read": (1 + taken) * 7, "answer": 1 + taken, "judge": judged, "integrate": taken}


def test_a_writer_without_tools_replies_once() -> None:
    listing = Loop("memreader", load_profile("extractor"), max_rereads=0, max_searches=4)
    assert [turn.count for turn in turns_of(listing, Assumptions(searches=2))] == [1]


def test_seconds_of_a_step_by_hand() -> None:
    """One chunk and an answer, 16 rollouts on 4 GPUs of 989 TFLOP/s and 3.35 TB/s."""
    assumed = NOTHING.model_copy(update={"document_tokens": 5000, "rows": 10})
    memory = memory_of(run(), assumed)
    hours = hours_of(run(), memory, assumed)

    def forward(tokens: float) -> float:
        return 2 * 1992 * tokens + 2 * 2 * 2 * 4 * tokens**2

    peak = 4 * 989e12
    assert hours.reading_s == pytest.approx(16 * (forward(5768) + forward(768)) / (peak * 0.4))
    # forward, backward, layers again, reference, old: 1 + 2 + 1 + 1 + 1
    assert hours.passes_s == pytest.approx(16 * 6 * (forward(6280) + forward(1280)) / (peak * 0.35))
    moved = 2 * 2792 + 4 * ((5768 + 256) + (768 + 256)) / 2 * 32
    assert hours.writing_s == pytest.approx(16 * 1024 / (4 * 4 * 3.35e12 * 0.6 / moved * 0.7))
    assert (hours.rows, hours.reply_tokens, hours.steps) == (32, 16 * 1024, 10 // 2 * 3)
    assert hours.gpu_hours == pytest.approx(15 * hours.step_s / 3600 * 4)


def test_an_engine_without_room_has_no_hours() -> None:
    empty = Memory(update={}, rollout={}, cache=0, gpu=80 * GIB, cached_rows=0)
    with pytest.raises(ValueError, match="no room"):
        hours_of(run(), empty, NOTHING)


def test_a_report_names_every_assumption() -> None:
    memory = memory_of(run(), NOTHING)
    text = "\n".join(lines_of("it", memory, hours_of(run(), memory, NOTHING), NOTHING))
    assert all(f"{name}=" in text for name in Assumptions.model_fields)
    assert table_row("it", memory, hours_of(run(), memory, NOTHING), NOTHING).startswith("| `it` | 4 × h100 |")
