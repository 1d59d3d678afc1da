"""Values and behaviour of the engines that the launcher counts on, read in the engines' own sources."""

import ast
import copy
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Union, get_args
from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from inference.engines import BUILDERS, sglang, vllm, vllm_parsers
from inference.estimate import GIB, Hardware, estimate, runtime_bytes
from inference.machine import EngineName
from inference.metrics import engine_load
from inference.plan import plan_engine
from inference.registry import ModelShape
from inference.settings import LauncherSettings, SettingsRefused
from tests.inference.test_commands import BIG
from tests.inference.test_plan import GPU

SGLANG = Path(sys.prefix) / "sglang/sglang/srt"
"""Where ``make test`` unpacks the wheel. Its modules need CUDA, so that what is tried of them is read out."""


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def vllm_file(path: str) -> ast.Module:
    """A module of the installed vLLM, without its imports of a minute."""
    found = find_spec("vllm")
    assert found is not None
    assert found.origin is not None
    return parsed(Path(found.origin).parent / path)


def value_of(module: ast.Module | ast.ClassDef, name: str) -> ast.expr:
    """What a module or a class assigns to a name."""
    for line in module.body:
        targets = (
            line.targets if isinstance(line, ast.Assign) else [line.target] if isinstance(line, ast.AnnAssign) else []
        )
        if [ast.unparse(target) for target in targets] == [name] and isinstance(line, ast.Assign | ast.AnnAssign):
            assert line.value is not None
            return line.value
    raise AssertionError(f"no {name}")


def words_of(expression: ast.expr) -> set[Any]:
    """The words and numbers of a list or a Literal, or a dictionary's keys."""
    if isinstance(expression, ast.Dict):
        return {key.value for key in expression.keys if isinstance(key, ast.Constant)}
    return {each.value for each in ast.walk(expression) if isinstance(each, ast.Constant)}


def method(file: str, name: str, **names: object) -> Callable[..., Any]:
    """A method of SGLang, alone; ``names`` are what its module has or it imports."""
    [found] = [
        each for each in ast.walk(parsed(SGLANG / file)) if isinstance(each, ast.FunctionDef) and each.name == name
    ]
    found.body = [line for line in found.body if not isinstance(line, ast.ImportFrom)]
    module: dict[str, Any] = {"Optional": Union, "List": list, **names}
    exec(compile(ast.Module([found], []), file, "exec"), module)
    return module[name]


def values_of(setting: str) -> list[str]:
    """The values that a setting takes."""
    annotation = LauncherSettings.model_fields[setting].annotation
    literal = next(each for each in get_args(annotation) if each is not type(None))
    return [str(value) for value in get_args(literal)]


KNOWN = {
    ("vllm", "serve_quantization"): lambda: words_of(
        value_of(vllm_file("model_executor/layers/quantization/__init__.py"), "QuantizationMethods")
    ),
    ("vllm", "serve_load_format"): lambda: words_of(
        value_of(vllm_file("model_executor/model_loader/__init__.py"), "LoadFormats")
    ),
    ("sglang", "serve_quantization"): lambda: words_of(sglang_choices("QUANTIZATION_CHOICES")),
    ("sglang", "serve_load_format"): lambda: words_of(sglang_choices("LOAD_FORMAT_CHOICES")),
}


def sglang_choices(name: str) -> ast.expr:
    [file] = [each for each in (SGLANG / "arg_groups").glob("*.py") if f"\n{name} = " in each.read_text("utf-8")]
    return value_of(parsed(file), name)


@pytest.mark.parametrize(
    ("engine", "setting", "value"),
    [(engine, setting, value) for engine, setting in KNOWN for value in values_of(setting)],
)
def test_an_engine_has_a_settings_value_or_the_launcher_refuses_it(
    engine: EngineName, setting: str, value: str
) -> None:
    settings = LauncherSettings.model_validate({"model": "a/b", "engine": engine, setting: value})
    if value in KNOWN[engine, setting]():
        assert value in BUILDERS[engine](plan_engine(settings, {}, GPU)).argv
    else:
        with pytest.raises(SettingsRefused, match=f"MEMLOOP_{setting.upper()}: .* has no {value}"):
            plan_engine(settings, {}, GPU)


def test_ranks_of_adapters_are_those_that_vllm_takes() -> None:
    assert words_of(value_of(vllm_file("config/lora.py"), "MaxLoRARanks")) == set(vllm.LORA_RANKS)


def test_parsers_are_those_that_vllm_registers() -> None:
    tools = value_of(vllm_file("tool_parsers/__init__.py"), "_TOOL_PARSERS_TO_REGISTER")
    thinking = value_of(vllm_file("reasoning/__init__.py"), "_REASONING_PARSERS_TO_REGISTER")
    assert words_of(tools) == vllm_parsers.TOOL_CALL_PARSERS
    assert words_of(thinking) == vllm_parsers.REASONING_PARSERS


def test_sglangs_count_of_computed_tokens_grows_while_a_request_runs() -> None:
    file = "observability/metrics_collector.py"
    registry = CollectorRegistry()
    [own] = [
        each
        for each in ast.walk(parsed(SGLANG / file))
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "self.realtime_tokens_total"
    ]
    collector = SimpleNamespace(labels={"model_name": "m"}, dp_cooperation_realtime_tokens_total=None)
    names: dict[str, Any] = {
        "Counter": partial(Counter, registry=registry),
        "labels": {"model_name": "m"},
        "self": collector,
    }
    exec(compile(ast.Module([own], []), file, "exec"), names)
    count = method(file, "increment_realtime_tokens", DPCooperationInfo=object)
    count(collector, None, prefill_compute_tokens=4096, prefill_cache_tokens=8192)
    count(collector, None, decode_tokens=120)
    assert engine_load(generate_latest(registry).decode()).generated == 4216


def test_sglang_guesses_nothing_from_a_prompt_but_its_end() -> None:
    """A text that only the document holds is in no trie: neither before nor after the reply that quotes it."""
    file = "speculative/ngram_worker.py"
    argv = BUILDERS["sglang"](BIG).argv
    depth = int(argv[argv.index("--speculative-ngram-max-trie-depth") + 1])
    put = list[list[int]]()
    last = method(file, "_efficient_concat_last_n")
    worker = SimpleNamespace(
        draft_token_num=9,
        enable_overlap=False,
        max_trie_depth=depth,
        ngram_corpus=SimpleNamespace(batch_put=put.extend),
        _efficient_concat_last_n=partial(last, None),
    )
    prompt, reply = list(range(1000)), [7001, 7002, 7003]
    batch = SimpleNamespace(
        reqs=[SimpleNamespace(origin_input_ids_unpadded=prompt, output_ids=reply)], grammar_needs_sync=lambda: False
    )
    method(file, "_update_ngram_corpus", ScheduleBatch=object)(worker, batch)
    assert put == [[*prompt[len(reply) - depth :], *reply]]


def test_vllms_own_share_of_a_gpu_is_the_one_that_plans_count_with() -> None:
    [own] = [
        ast.literal_eval(keyword.value)
        for field in ast.walk(vllm_file("config/cache.py"))
        if isinstance(field, ast.AnnAssign) and ast.unparse(field.target) == "gpu_memory_utilization"
        for keyword in ast.walk(field)
        if isinstance(keyword, ast.keyword) and keyword.arg == "default"
    ]
    shape, gpu = ModelShape(parameters=1, layers=1, kv_heads=1, head_dim=1), Hardware(100 * GIB, 1)
    plan = replace(BIG, quantization=None, memory_fraction=None, tensor_parallel_size=1, data_parallel_size=1)
    planned = estimate(plan, shape, gpu, call_tokens=1).cache + runtime_bytes(plan, gpu)
    assert planned == pytest.approx(own * 100 * GIB, abs=4)


def reserved_by_sglang(gib: int, gpus: int) -> float:
    """GiB of a GPU that SGLang's own heuristic leaves to activations and graphs, for a model of text."""
    hook, graphs = "arg_groups/memory_hook.py", "arg_groups/cuda_graph_hook.py"

    def same(found: object) -> object:
        return found

    def declare(given: SimpleNamespace, _where: str, **values: object) -> None:
        vars(given).update(values)

    phase = {"max_bs": None, "bs": None, "backend": "full"}
    config = SimpleNamespace(decode=SimpleNamespace(**phase), prefill=SimpleNamespace(**phase))
    asked = dict.fromkeys(
        ("chunked_prefill_size", "max_running_requests", "max_total_tokens", "speculative_algorithm", "enable_symm_mem")
    )
    given = SimpleNamespace(
        **asked,
        device="cuda",
        cuda_graph_config=config,
        tp_size=gpus,
        pp_size=1,
        disable_cuda_graph_padding=False,
        model_path="a/b",
        disaggregation_mode="null",
        mem_fraction_static=None,
    )
    names: dict[str, object] = {
        "Any": object,
        "Backend": SimpleNamespace(DISABLED="disabled", BREAKABLE="breakable"),
        "copy": copy,
        "resolving_view": same,
        "resolved_view": same,
        "declare_resolution": declare,
        "get_device_memory_capacity": Mock(return_value=gib * 1024),
        "get_platform": Mock(return_value=SimpleNamespace(is_xpu=False)),
        "model_config_of": Mock(return_value=SimpleNamespace(is_multimodal=False)),
        "expand_multimodal_decode_graph_to_running_limit": Mock(),
        "reserve_for_deepep_a2a_mb": Mock(return_value=0),
    }
    no = ("post_capture_kv_sizing_planned", "use_mla_backend", "attn_dp_enabled_of")
    names |= dict.fromkeys(no, Mock(return_value=False))
    for each in ("generate_decode_cuda_graph_batch_sizes", "generate_prefill_cuda_graph_batch_sizes"):
        names[each] = method(graphs, each, Any=object, resolving_view=same)
    names["reserve_for_graph_mb"] = method(hook, "reserve_for_graph_mb", **names)
    method(hook, "handle_gpu_memory_settings", **names)(given)
    return gib * (1 - given.mem_fraction_static)


@pytest.mark.parametrize("gpus", [1, 8])
@pytest.mark.parametrize("gib", [16, 24, 48, 80, 141, 180])
def test_a_plan_counts_with_what_sglang_leaves_to_activations_and_graphs(gib: int, gpus: int) -> None:
    plan = replace(BIG, engine="sglang", memory_fraction=None, prefill_chunk_tokens=None, tensor_parallel_size=gpus)
    planned = runtime_bytes(plan, Hardware(gib * GIB, gpus)) / GIB
    assert planned == pytest.approx(reserved_by_sglang(gib, gpus), abs=0.0006 * gib)  # SGLang rounds to a thousandth


@pytest.mark.parametrize(
    ("file", "table", "names"),
    [
        ("function_call/function_call_parser.py", "ToolCallParserEnum", sglang.TOOL_CALL_PARSERS),
        ("parser/reasoning_parser.py", "DetectorMap", sglang.REASONING_PARSERS),
    ],
)
def test_parsers_have_the_names_that_sglang_has(file: str, table: str, names: dict[str, str]) -> None:
    [own] = [
        each
        for each in ast.walk(parsed(SGLANG / file))
        if isinstance(each, ast.ClassDef) and table in ast.unparse(each)
    ]
    assert set(names.values()) <= words_of(value_of(own, table))
