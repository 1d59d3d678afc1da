"""``plan``: command, memory and warnings of a start, on paper."""

import json
import re
import struct
from pathlib import Path

import pytest

from inference.engines import EnginePlan
from inference.estimate import GIB, Hardware, estimate, shape_of
from inference.plan_command import plan_text
from inference.registry import ModelShape, read_registry
from inference.settings import LauncherSettings

CARDS = read_registry()
SEVEN = ModelShape(parameters=7_000_000_000, layers=28, kv_heads=4, head_dim=128)


def plan(**values: object) -> EnginePlan:
    fields = {"engine": "vllm", "python": "python3", "model": "a/b", "served_name": "b", "host": "127.0.0.1"}
    return EnginePlan(**(fields | {"port": 7803, "profile": "default", "dtype": "bfloat16"} | values))  # type: ignore[arg-type]


def text_of(model: str, *, gpu_gib: float | None = 80, **settings: object) -> str:
    return plan_text(LauncherSettings.model_validate({"model": model, **settings}), CARDS, gpu_gib=gpu_gib)


def test_weights_and_cache_follow_the_equations() -> None:
    found = estimate(plan(), SEVEN, Hardware(80 * GIB, 1), call_tokens=8192)
    assert found.weights == 14_000_000_000  # 7e9 numbers of two bytes
    assert found.per_token == 2 * 28 * 4 * 128 * 2  # key and value, layers, heads, width, bytes
    assert found.cache == round(80 * GIB * 0.92 - 2 * GIB - 14_000_000_000)
    assert found.chunks_at_once == found.cache // (found.per_token * 8192)


def test_replicas_and_splits_change_the_cache_as_they_should() -> None:
    one = estimate(plan(), SEVEN, Hardware(80 * GIB, 1), call_tokens=8192)
    split = estimate(plan(tensor_parallel_size=2), SEVEN, Hardware(80 * GIB, 2), call_tokens=8192)
    copied = estimate(plan(data_parallel_size=2), SEVEN, Hardware(80 * GIB, 2), call_tokens=8192)
    assert (copied.weights, copied.cache) == (2 * one.weights, 2 * one.cache)
    assert split.cache - copied.cache == pytest.approx(one.weights, abs=1)


@pytest.mark.parametrize(
    ("values", "bytes_per_weight", "bytes_per_value"),
    [({"quantization": "fp8"}, 1, 2), ({"kv_cache_dtype": "fp8"}, 2, 1), ({"dtype": "float32"}, 4, 4)],
    ids=["fp8 weights", "fp8 cache", "fp32"],
)
def test_smaller_numbers_take_less(values: dict[str, object], bytes_per_weight: int, bytes_per_value: int) -> None:
    found = estimate(plan(**values), SEVEN, Hardware(80 * GIB, 1), call_tokens=8192)
    assert found.weights == SEVEN.parameters * bytes_per_weight
    assert found.per_token == 2 * 28 * 4 * 128 * bytes_per_value


def test_a_checkpoint_on_disk_is_counted_in_its_own_files(tmp_path: Path) -> None:
    config = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    header = json.dumps({"__metadata__": {"format": "pt"}, "a": {"shape": [3, 5]}, "b": {"shape": [7]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert shape_of(tmp_path) == ModelShape(parameters=22, layers=2, heads=4, kv_heads=2, head_dim=16)


@pytest.mark.parametrize("model", CARDS)
@pytest.mark.parametrize("engine", ["vllm", "sglang", "vllm-cpu"])
def test_every_row_has_a_plan_on_every_engine(model: str, engine: str) -> None:
    sized = {"serve_kv_cache_memory_bytes": None, "serve_memory_fraction": 0.8} if engine == "sglang" else {}
    text = text_of(model, engine=engine, gpu_gib=80, **sized)
    assert "command   " in text
    assert "chunks    " in text


def test_the_shipped_model_is_planned_for_this_machine_with_its_own_weights() -> None:
    text = text_of("memloop-tiny", gpu_gib=None, engine="vllm-cpu")
    assert "--max-num-seqs 16" in text
    assert "chunks    32 at once, each of the profile's window of 1024 tokens" in text


def test_readers_speculate_and_the_memory_writer_does_not() -> None:
    assert "num_speculative_tokens" in text_of("RL-MemoryAgent-7B")
    assert "num_speculative_tokens" not in text_of("MemReader-4B-thinking")
    assert "num_speculative_tokens" not in text_of("RL-MemoryAgent-7B", serve_speculation="off")


@pytest.mark.parametrize(
    ("settings", "gpu_gib", "warning"),
    [
        ({}, 24, "the weights leave no room for a cache"),
        ({"serve_max_num_seqs": 64}, 48, "the cache holds fewer windows than the 64 sequences"),
        ({"serve_prefix_caching": False}, 80, "without prefix caching"),
        ({"serve_max_num_seqs": 64}, 80, "speculation helps a lone read"),
        ({"serve_tensor_parallel_size": 3}, 80, "40 attention heads do not divide by 3 GPUs"),
    ],
    ids=["too small", "preempts", "no prefix cache", "busy speculation", "odd split"],
)
def test_a_plan_warns_of_what_will_disappoint(settings: dict[str, object], gpu_gib: float, warning: str) -> None:
    assert f"warning   {warning}" in text_of("RL-MemoryAgent-14B", gpu_gib=gpu_gib, **settings)


def test_a_plan_for_sglang_says_that_its_guesses_come_from_no_prompt() -> None:
    warning = "SGLang guesses only what the same process has written before, for any request"
    assert f"warning   {warning}" in text_of("RL-MemoryAgent-7B", engine="sglang")
    assert warning not in text_of("RL-MemoryAgent-7B", engine="sglang", serve_speculation="off")
    assert warning not in text_of("RL-MemoryAgent-7B")


def test_a_plan_names_the_form_in_which_memories_are_written_without_a_parser() -> None:
    warning = "vLLM refuses tool calls without a parser: memories are written in the form json_schema"
    assert warning in text_of("Qwen/Qwen3-8B")
    assert warning not in text_of("Qwen/Qwen3-8B", serve_tool_call_parser="hermes")
    assert warning not in text_of("Qwen/Qwen3-8B", serve_extra_args="--tool-call-parser=hermes")
    assert warning not in text_of("Qwen/Qwen3-8B", engine="sglang")
    assert warning not in text_of("MemReader-0.6B")


def test_a_plan_warns_of_a_profile_of_tools_alone_without_a_parser() -> None:
    warning = "the launcher would refuse to start: the profile tiny"
    assert warning in text_of("Qwen/Qwen3-8B", profile="tiny")
    assert warning not in text_of("Qwen/Qwen3-8B", profile="tiny", serve_tool_call_parser="hermes")


def test_a_row_without_weights_names_the_missing_setting() -> None:
    text = text_of("MemReader-0.6B")
    assert "--model FOLDER/OF/MemReader-0.6B" in text
    assert "set MEMLOOP_MODEL_PATH to their folder" in text


def test_a_plan_shows_no_key() -> None:
    assert "s3cret" not in text_of("Qwen3-4B", engine_api_key="s3cret")
    assert "s3cret" not in text_of("Qwen3-4B", engine_api_key="s3cret", engine="sglang")


@pytest.mark.parametrize("gib", [16, 24], ids=lambda gib: f"{gib} GB")
def test_composes_window_of_the_default_model_fits_a_small_card(gib: int) -> None:
    compose = (Path(__file__).parents[2] / "docker-compose.yml").read_text()
    [window] = re.findall(r"MEMLOOP_SERVE_MAX_MODEL_LEN:-(\d+)", compose)
    [model] = re.findall(r"MEMLOOP_MODEL:-(Qwen\S+)}", compose)
    shape = CARDS[model].shape
    assert shape is not None
    found = estimate(plan(), shape, Hardware(gib * GIB, 1), call_tokens=int(window))
    assert found.chunks_at_once >= 2
