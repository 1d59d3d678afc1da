"""The GPU part of the inference benchmark, as far as no GPU is needed: files, settings, prompts, arithmetic."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from tokenizers import Tokenizer

from benchmarks.inference.__main__ import VARIANTS, chosen
from benchmarks.inference.chunk_loop import Load, Measured, prompt_ids, request, usage_of
from benchmarks.inference.shaped import Prices, figures, measure, planned
from benchmarks.inference.shapes import SHAPES, engine_settings, write_shape
from inference.engines import BUILDERS
from inference.lifecycle import warmup_prompts
from inference.machine import Machine
from inference.plan import plan_engine
from inference.registry import read_registry
from inference.settings import LauncherSettings
from memloop.profiles import load_profile
from memloop.wire.memory import Usage

ROWS = {"qwen3-4b": "Qwen3-4B", "qwen2.5-7b": "RL-MemoryAgent-7B", "qwen2.5-14b": "RL-MemoryAgent-14B"}


def parameters(config: dict[str, int], *, biased: bool) -> int:
    """Weights of a Qwen2 (biases on q, k, v) or Qwen3 (norms of q and k heads) of this shape."""
    hidden, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
    size = config.get("head_dim", hidden // heads)
    attention = 2 * hidden * heads * size + 2 * hidden * kv_heads * size
    extra = (heads + 2 * kv_heads) * size if biased else 2 * size
    layer = attention + extra + 3 * hidden * config["intermediate_size"] + 2 * hidden
    embeddings = config["vocab_size"] * hidden * (1 if config["tie_word_embeddings"] else 2)
    return embeddings + config["num_hidden_layers"] * layer + hidden


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_has_as_many_weights_as_the_published_checkpoint(shape: str, tmp_path: Path) -> None:
    config = orjson.loads((write_shape(shape, tmp_path) / "config.json").read_bytes())
    published = read_registry()[ROWS[shape]].shape
    assert published is not None
    assert parameters(config, biased=config["model_type"] == "qwen2") == published.parameters


@pytest.mark.parametrize("shape", SHAPES)
def test_the_launcher_plans_random_weights_for_all_documents_at_once(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = engine_settings(shape, write_shape(shape, tmp_path), documents=256)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    plan = plan_engine(LauncherSettings(), {}, Machine(has_gpu=True, installed=frozenset({"vllm"})))
    argv = BUILDERS[plan.engine](plan).argv
    told = {name: argv[argv.index(name) + 1] for name in ("--model", "--load-format", "--max-num-seqs", "--dtype")}
    assert told == {
        "--model": str(tmp_path),
        "--load-format": "dummy",
        "--max-num-seqs": "256",
        "--dtype": "bfloat16",
    }


def test_the_launchers_warm_up_may_call_the_profiles_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in engine_settings("qwen3-4b", write_shape("qwen3-4b", tmp_path), documents=1).items():
        monkeypatch.setenv(name, value)
    plan = plan_engine(LauncherSettings(), {}, Machine(has_gpu=True, installed=frozenset({"vllm"})))
    assert any(prompt.tools for prompt in warmup_prompts(load_profile(plan.profile)).values())
    assert "--enable-auto-tool-choice" in BUILDERS[plan.engine](plan).argv


@pytest.mark.parametrize("shape", SHAPES)
def test_every_id_of_the_vocabulary_has_a_text(shape: str, tmp_path: Path) -> None:
    """Without one, an engine that decodes a reply step by step decodes prompt and reply again at every step."""
    folder = write_shape(shape, tmp_path)
    tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
    vocabulary = orjson.loads((folder / "config.json").read_bytes())["vocab_size"]
    assert tokenizer.get_vocab_size() == vocabulary
    assert all(tokenizer.decode([number]) for number in (4070, 4096, vocabulary - 1))
    text = "The whale swam on through the night."
    tiny: Any = Tokenizer.from_file("services/inference/models/memloop-tiny/tokenizer.json")
    assert tokenizer.encode(text).ids == tiny.encode(text).ids


def test_a_call_takes_7168_tokens_and_shares_template_and_question_with_its_document() -> None:
    first, second, other = prompt_ids(0, 0), prompt_ids(0, 1), prompt_ids(1, 0)
    assert len(first) == 7168
    assert first[:1144] == second[:1144]
    assert first[:120] == other[:120]
    assert first[1144:] != second[1144:]
    assert first[120:1144] != other[120:1144]
    assert all(16 <= number <= 4095 for number in first)


def test_a_reply_goes_on_to_its_length_and_a_shorter_one_is_refused() -> None:
    assert request("m", [16], reply_tokens=1024)["ignore_eos"] is True
    with pytest.raises(ValueError, match="12 tokens instead of 1024"):
        usage_of({"usage": {"prompt_tokens": 7168, "completion_tokens": 12}}, 1024)


def test_seconds_and_cost_of_a_million_tokens_by_hand() -> None:
    """8 documents of 2 chunks in 40 s: 80,000 tokens of text; 16 calls of 7,168 + 1,024 tokens."""
    usage = Usage(input_tokens=16 * 7168, output_tokens=16 * 1024, llm_calls=16)
    row = Measured("both on", Load(8, 2), 40.0, usage)
    assert row.tokens_per_s == pytest.approx(3276.8)
    assert row.s_per_1m_document == pytest.approx(4000.0)
    assert row.gpu_s_per_1m(2) == pytest.approx(1000.0)
    assert row.usd_per_1m(2, usd_per_hour=3.6) == pytest.approx(1.0)


def test_the_share_is_of_the_same_engines_most() -> None:
    usage = Usage(input_tokens=900, output_tokens=100)
    rows = [Measured("a", Load(8, 2), 40.0, usage), Measured("a", Load(8, 2, serial=False), 10.0, usage)]
    (told,) = figures(rows, Prices(gpus=2, usd_per_hour=3.6))
    assert (told["share_of_most"], told["gpu_s_per_1m_tokens"], told["usd_per_1m_tokens"]) == (0.25, 1000.0, 1.0)


def test_the_rates_of_prompts_and_replies_by_hand() -> None:
    """64 prompts of 7,168 tokens in 8 s: 57,344 a second. 128 such calls in 36 s: 16 s of prompts, 20 s of replies."""
    prompts = planned([1, 64])[0]
    usage = Usage(input_tokens=64 * 7168, output_tokens=64)
    calls = Usage(input_tokens=128 * 7168, output_tokens=128 * 1024)
    rows = [
        Measured("a", prompts, 8.0, usage),
        Measured("a", Load(64, 2), 36.0, calls),
        Measured("a", Load(64, 2, serial=False), 36.0, calls),
    ]
    (told,) = figures(rows, Prices(gpus=1, usd_per_hour=0.0))
    assert (told["prompt_tokens_per_s"], told["reply_tokens_per_s"]) == (57344.0, 6553.6)
    assert told["share_of_most"] == 1.0


def test_the_loads_are_the_prompts_alone_each_number_of_documents_and_the_engines_most() -> None:
    prompts, one, many, most = planned([1, 64])
    assert (prompts.documents, prompts.chunks, prompts.reply_tokens, prompts.serial) == (64, 1, 1, False)
    assert [(load.documents, load.serial) for load in (one, many, most)] == [(1, True), (64, True), (64, False)]


def test_a_variant_may_be_chosen_by_name() -> None:
    assert set(chosen(["no speculation"])) == {"no speculation"}
    assert chosen(None) == VARIANTS


def test_no_engine_starts_after_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    assert measure("qwen3-4b", [1], VARIANTS, until=0.0) == []
    assert capsys.readouterr().out.count("no time left for") == len(VARIANTS)
