"""SGLang's command line, read by SGLang's own argument parser out of its wheel."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inference.engines import BUILDERS
from inference.plan import plan_engine
from inference.settings import LauncherSettings, SettingsRefused
from tests.fakes import sglang_arguments
from tests.inference.test_commands import BIG
from tests.inference.test_plan import GPU

SOURCES = Path(sys.prefix) / "sglang"
"""Where ``make test`` unpacks the wheel."""


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """The folder of an adapter of rank 48."""
    (tmp_path / "adapter_config.json").write_text('{"r": 48}', "utf-8")
    return tmp_path


def test_sglangs_own_parser_understands_every_flag_that_we_write() -> None:
    assert SOURCES.is_dir(), "SGLang's wheel is not unpacked: `make test` or `make check` does it"
    command = BUILDERS["sglang"](BIG).argv[3:]
    parsed = subprocess.run(
        [sys.executable, sglang_arguments.__file__, str(SOURCES), *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert parsed.returncode == 0, parsed.stderr[-2000:]
    understood = json.loads(parsed.stdout.splitlines()[-1])
    expected = {
        "model_path": "IAAR-Shanghai/MemReader-4B-thinking",
        "served_model_name": "MemReader-4B-thinking",
        "context_length": 40960,
        "max_running_requests": 64,
        "tp_size": 2,
        "dp_size": 2,
        "mem_fraction_static": 0.9,
        "kv_cache_dtype": "fp8_e4m3",
        "quantization": "fp8",
        "chunked_prefill_size": 8192,
        "speculative_algorithm": "NGRAM",
        "speculative_num_draft_tokens": 9,
        "enable_lora": True,
        "max_lora_rank": 32,
        "tool_call_parser": "qwen25",
        "reasoning_parser": "qwen3",
        "sampling_defaults": "openai",
        "enable_metrics": True,
        "random_seed": 7,
        "allowed_media_domains": ["images.example.com", "cdn.example.com"],
        "port": 7803,
    }
    assert {name: understood.get(name) for name in expected} == expected


def adapter_reached(model: str, served: str) -> str | None:
    """What SGLang's own code takes for a request's adapter; its module needs CUDA, so the method is read alone."""
    module = ast.parse((SOURCES / "sglang/srt/entrypoints/openai/serving_base.py").read_text("utf-8"))
    functions = [each for each in ast.walk(module) if isinstance(each, ast.FunctionDef)]
    [method] = [each for each in functions if each.name == "_parse_model_parameter"]
    names: dict[str, Any] = {"Tuple": tuple, "Optional": dict}
    exec(compile(ast.Module([method], []), "serving_base", "exec"), names)
    server = SimpleNamespace(tokenizer_manager=SimpleNamespace(served_model_name=served))
    return names["_parse_model_parameter"](server, model)[1]


@pytest.mark.parametrize("served", ["Qwen3-4B", "org/model:v1"])
def test_a_request_for_an_adapters_name_reaches_it_on_sglang_and_not_the_base(served: str, adapter: Path) -> None:
    settings = LauncherSettings(model="a/b", engine="sglang", serve_name=served, serve_lora=f"{served}:mine={adapter}")
    plan = plan_engine(settings, {}, GPU)
    argv = BUILDERS["sglang"](plan).argv
    loaded = argv[argv.index("--lora-paths") + 1].partition("=")[0]
    assert [adapter_reached(each.name, plan.served_name) for each in plan.adapters] == [loaded]


def test_a_name_by_which_sglang_would_answer_with_the_base_is_refused(adapter: Path) -> None:
    assert adapter_reached("mine", "Qwen3-4B") is None
    settings = LauncherSettings(model="a/b", engine="sglang", serve_name="Qwen3-4B", serve_lora=f"mine={adapter}")
    with pytest.raises(SettingsRefused, match="so name it Qwen3-4B:mine"):
        plan_engine(settings, {}, GPU)


def test_the_strict_level_is_sglangs_own_for_parameters() -> None:
    text = (SOURCES / "sglang/srt/environ.py").read_text("utf-8")
    assert "SGLANG_TOOL_STRICT_LEVEL = EnvInt(" in text
    classes = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.ClassDef)]
    [levels] = [each for each in classes if each.name == "ToolStrictLevel"]
    lines = [line for line in levels.body if isinstance(line, ast.Assign)]
    values = {ast.unparse(line.targets[0]): ast.unparse(line.value) for line in lines}
    own = BUILDERS["sglang"](replace(BIG, engine="sglang")).environment["SGLANG_TOOL_STRICT_LEVEL"]
    assert values["PARAMETER"] == own
