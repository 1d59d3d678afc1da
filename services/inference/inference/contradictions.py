"""Finds settings that contradict each other, the engine, the model or the machine."""

import shutil
from pathlib import Path

from inference.budgets import fitted_profile, positions_served
from inference.checkpoint import gguf_files
from inference.engines import EnginePlan, sglang, vllm, vllm_parsers
from inference.estimate import attention_heads
from inference.machine import ON_PROCESSORS
from inference.prompts import profile_of
from inference.rope import SETTING
from inference.settings import LauncherSettings
from memloop.profiles import ProfileError
from memloop_service import refuse_open_listen

_MOST_STATIC = 0.9
_BITS = "bitsandbytes"


def contradictions(settings: LauncherSettings, plan: EnginePlan) -> list[str]:
    """Return one sentence per contradiction: the setting and, where there is one, the way out."""
    return [
        *_about_place(settings, plan),
        *_about_tls(settings, plan),
        *_about_memory(settings, plan),
        *_about_scale(plan),
        *_about_speculation(settings, plan),
        *_about_adapters(plan),
        *_about_kernels(plan),
        *_about_parsers(plan),
        *_about_window(plan),
        *_about_openvino(settings, plan),
    ]


def _about_place(settings: LauncherSettings, plan: EnginePlan) -> list[str]:
    reasons: list[str] = []
    if settings.engine_url:
        reasons.append("MEMLOOP_ENGINE_URL names a running engine: unset it, or run without the launcher")
    if settings.engine_port == settings.port:
        reasons.append(f"MEMLOOP_PORT and MEMLOOP_ENGINE_PORT are both {settings.port}")
    if shutil.which(plan.python) is None:
        reasons.append(f"MEMLOOP_SERVE_PYTHON: there is no program {plan.python}")
    if plan.chat_template and not Path(plan.chat_template).is_file():
        reasons.append(f"MEMLOOP_SERVE_CHAT_TEMPLATE: there is no file {plan.chat_template}")
    if plan.revision and plan.local:
        reasons.append("MEMLOOP_SERVE_REVISION chooses among versions on a hub, but the model is a folder")
    return reasons + [reason for host in (settings.host, plan.host) if (reason := _open_listen(host, plan))]


def _about_tls(settings: LauncherSettings, plan: EnginePlan) -> list[str]:
    reasons: list[str] = []
    if plan.tls_cert and plan.engine == "sglang":
        reasons.append("MEMLOOP_TLS_CERT: the launcher gives SGLang no TLS: end TLS before it, or serve by vLLM")
    names = ("tls_cert", "tls_key", "tls_client_ca", "connect_ca", "connect_cert", "connect_key")
    files: dict[str, Path | None] = {name: getattr(settings, name) for name in names}
    absent = {name: file for name, file in files.items() if file is not None and not file.is_file()}
    return reasons + [f"MEMLOOP_{name.upper()}: there is no file {file}" for name, file in absent.items()]


def _open_listen(host: str, plan: EnginePlan) -> str | None:
    try:
        refuse_open_listen(host, has_keys=plan.api_key is not None)
    except SystemExit:
        return f"to listen on {host}, beyond this machine, needs a MEMLOOP_ENGINE_API_KEY"
    return None


def _about_memory(settings: LauncherSettings, plan: EnginePlan) -> list[str]:
    reasons: list[str] = []
    on_cpu = plan.engine in ON_PROCESSORS
    if settings.serve_kv_cache_memory_bytes and plan.memory_fraction:
        reasons.append("MEMLOOP_SERVE_KV_CACHE_MEMORY_BYTES and MEMLOOP_SERVE_MEMORY_FRACTION exclude each other")
    if plan.memory_fraction and on_cpu:
        reasons.append("MEMLOOP_SERVE_MEMORY_FRACTION applies to GPU memory: use MEMLOOP_SERVE_KV_CACHE_MEMORY_BYTES")
    if settings.serve_kv_cache_memory_bytes and plan.engine == "sglang":
        reasons.append("SGLang sizes its cache by MEMLOOP_SERVE_MEMORY_FRACTION, not by bytes")
    if plan.engine == "sglang" and (plan.memory_fraction or 0) > _MOST_STATIC:
        reasons.append(
            f"MEMLOOP_SERVE_MEMORY_FRACTION={plan.memory_fraction:g}: on SGLang it is of weights and cache alone, and "
            f"above {_MOST_STATIC} activations and graphs have no room: leave it out, and SGLang chooses"
        )
    if plan.quantization and on_cpu:
        reasons.append("MEMLOOP_SERVE_QUANTIZATION needs a GPU's kernels, and a processor has none")
    return reasons


def _about_scale(plan: EnginePlan) -> list[str]:
    reasons: list[str] = []
    if plan.engine in ON_PROCESSORS:
        if plan.tensor_parallel_size > 1:
            reasons.append(f"MEMLOOP_SERVE_TENSOR_PARALLEL_SIZE splits a model over GPUs, and {plan.engine} uses none")
        if plan.data_parallel_size > 1:
            reasons.append(f"MEMLOOP_SERVE_DATA_PARALLEL_SIZE copies a model to more GPUs, and {plan.engine} uses none")
    heads = attention_heads(Path(plan.model)) if plan.local else None
    if heads is not None and heads % plan.tensor_parallel_size:
        gpus = plan.tensor_parallel_size
        reasons.append(f"MEMLOOP_SERVE_TENSOR_PARALLEL_SIZE={gpus} does not divide the model's {heads} attention heads")
    chunk, seqs = plan.prefill_chunk_tokens, plan.max_num_seqs
    if chunk is not None and seqs is not None and chunk < seqs:
        reasons.append(f"MEMLOOP_SERVE_PREFILL_CHUNK_TOKENS={chunk} leaves no token for each of {seqs} sequences")
    return reasons


def _about_speculation(settings: LauncherSettings, plan: EnginePlan) -> list[str]:
    if settings.serve_speculation_tokens is not None and plan.speculation is None:
        return ["MEMLOOP_SERVE_SPECULATION_TOKENS is set, but speculation is off: MEMLOOP_SERVE_SPECULATION=ngram"]
    return []


def _about_adapters(plan: EnginePlan) -> list[str]:
    names = [plan.served_name, *(adapter.name for adapter in plan.adapters)]
    twice = sorted({name for name in names if names.count(name) > 1})
    reasons = [f"MEMLOOP_SERVE_LORA: two models would be served as {name}" for name in twice]
    missing = [adapter.path for adapter in plan.adapters if not (Path(adapter.path) / "adapter_config.json").is_file()]
    reasons += [f"MEMLOOP_SERVE_LORA: {path} is not an adapter: it lacks adapter_config.json" for path in missing]
    if plan.engine == "sglang":
        reasons += [
            f"MEMLOOP_SERVE_LORA: SGLang would answer {adapter.name} with the base model: it serves an adapter as "
            f"{plan.served_name}:NAME, so name it {plan.served_name}:{adapter.name}"
            for adapter in plan.adapters
            if not adapter.name.startswith(f"{plan.served_name}:")
        ]
    elif (plan.adapter_rank or 0) > max(vllm.LORA_RANKS):
        reasons.append(f"MEMLOOP_SERVE_LORA: vLLM takes ranks up to {max(vllm.LORA_RANKS)}, not {plan.adapter_rank}")
    return reasons


def _about_kernels(plan: EnginePlan) -> list[str]:
    reasons: list[str] = []
    if plan.engine != "sglang":
        named = {"MEMLOOP_SERVE_QUANTIZATION": plan.quantization, "MEMLOOP_SERVE_LOAD_FORMAT": plan.load_format}
        reasons += [f"{name}: vLLM has no bitsandbytes, SGLang has" for name, value in named.items() if value == _BITS]
    elif plan.dtype == "float32" and "--attention-backend" not in plan.extra_args:
        reasons.append("SGLang's attention kernels take no float32: MEMLOOP_SERVE_DTYPE=bfloat16")
    return reasons


def _about_parsers(plan: EnginePlan) -> list[str]:
    newer = vllm_parsers.ADDED_ON_GPUS if plan.engine == "vllm" else frozenset[str]()
    tools, thinking, engine = vllm_parsers.TOOL_CALL_PARSERS | newer, vllm_parsers.REASONING_PARSERS | newer, "vLLM"
    if plan.engine == "sglang":
        tools, thinking, engine = frozenset(sglang.TOOL_CALL_PARSERS), frozenset(sglang.REASONING_PARSERS), "SGLang"
    asked = (
        ("MEMLOOP_SERVE_TOOL_CALL_PARSER", plan.tool_call_parser, tools),
        ("MEMLOOP_SERVE_REASONING_PARSER", plan.reasoning_parser, thinking),
    )
    return [
        f"{setting}: {engine} has no parser for {name}, only for {', '.join(sorted(known))}"
        for setting, name, known in asked
        if name and name not in known
    ]


def _about_window(plan: EnginePlan) -> list[str]:
    """Return the reasons why profile, engine and model do not fit each other."""
    reasons: list[str] = []
    try:
        fitted_profile(plan, profile_of(plan))
    except ProfileError as error:
        reasons.append(f"MEMLOOP_PROFILE: {error}")
    positions = positions_served(plan)
    if positions is not None and plan.max_model_len is not None and plan.max_model_len > positions:
        way_out = "" if plan.yarn_factor else f"; {SETTING} stretches them"
        reasons.append(f"the model has {positions} positions, fewer than the {plan.max_model_len} asked for{way_out}")
    return reasons


def _about_openvino(settings: LauncherSettings, plan: EnginePlan) -> list[str]:
    """Return what our engine on OpenVINO lacks, and has no GGUF file for."""
    if plan.engine != "openvino":
        return []
    reasons: list[str] = []
    if not plan.local or len(gguf_files(Path(plan.model))) != 1:
        reasons.append(f"MEMLOOP_ENGINE=openvino serves a folder with one GGUF file, and {plan.model} is none")
    lacking = {
        "LORA": plan.adapters,
        "TOOL_CALL_PARSER": plan.tool_call_parser,
        "REASONING_PARSER": plan.reasoning_parser,
        "CHAT_TEMPLATE": plan.chat_template,
        "SPECULATION": plan.speculation,
        "YARN_FACTOR": plan.yarn_factor,
        "KV_CACHE_DTYPE": plan.kv_cache_dtype,
        "GENERATION_DEFAULTS": plan.checkpoint_defaults,
        "DTYPE": settings.serve_dtype,
    }
    return reasons + [
        f"MEMLOOP_SERVE_{name}: the engine openvino has no such choice" for name, set_to in lacking.items() if set_to
    ]
