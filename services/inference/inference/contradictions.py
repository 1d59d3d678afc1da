"""Finds settings that contradict each other, the engine, the model or the machine."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from inference.checkpoint import gguf_files
from inference.engines import EnginePlan, sglang, vllm, vllm_parsers
from inference.estimate import attention_heads
from inference.machine import ON_PROCESSORS
from inference.prompts import profile_of
from inference.settings import LauncherSettings
from inference.window import SETTING, fitted_profile, positions_of
from memloop.profiles import ProfileError
from memloop_service import refuse_open_listen

_MOST_STATIC = 0.9
_BITS = "bitsandbytes"
_FILES = (
    *("serve_chat_template", "tls_cert", "tls_key", "tls_client_ca"),
    *("connect_ca", "connect_cert", "connect_key"),
)


def contradictions(settings: LauncherSettings, plan: EnginePlan) -> list[str]:
    """Return one sentence per contradiction: the setting and, where there is one, the way out."""
    return [
        *_about_place(settings, plan),
        *_about_memory(settings, plan),
        *_about_kernels(plan),
        *_about_adapters(plan),
        *_about_parsers(plan),
        *_about_window(plan),
        *_about_openvino(settings, plan),
    ]


def _about_place(settings: LauncherSettings, plan: EnginePlan) -> Iterator[str]:
    if settings.engine_url:
        yield "MEMLOOP_ENGINE_URL names a running engine: unset it, or run without the launcher"
    if settings.engine_port == settings.port:
        yield f"MEMLOOP_PORT and MEMLOOP_ENGINE_PORT are both {settings.port}"
    if shutil.which(plan.python) is None:
        yield f"MEMLOOP_SERVE_PYTHON: there is no program {plan.python}"
    if plan.revision and plan.local:
        yield "MEMLOOP_SERVE_REVISION chooses among versions on a hub, but the model is a folder"
    for host in (settings.host, plan.host):
        try:
            refuse_open_listen(host, has_keys=plan.api_key is not None)
        except SystemExit:
            yield f"to listen on {host}, beyond this machine, needs a MEMLOOP_ENGINE_API_KEY"
    if plan.tls_cert and plan.engine == "sglang":
        yield "MEMLOOP_TLS_CERT: the launcher gives SGLang no TLS: end TLS before it, or serve by vLLM"
    for name in _FILES:
        file: Path | None = getattr(settings, name)
        if file is not None and not file.is_file():
            yield f"MEMLOOP_{name.upper()}: there is no file {file}"


def _about_memory(settings: LauncherSettings, plan: EnginePlan) -> Iterator[str]:
    cache, fraction = settings.serve_kv_cache_memory_bytes, plan.memory_fraction or 0
    chunk, seqs = plan.prefill_chunk_tokens, plan.max_num_seqs
    if cache and fraction:
        yield "MEMLOOP_SERVE_KV_CACHE_MEMORY_BYTES and MEMLOOP_SERVE_MEMORY_FRACTION exclude each other"
    if fraction and plan.engine in ON_PROCESSORS:
        yield "MEMLOOP_SERVE_MEMORY_FRACTION applies to GPU memory: use MEMLOOP_SERVE_KV_CACHE_MEMORY_BYTES"
    if cache and plan.engine == "sglang":
        yield "SGLang sizes its cache by MEMLOOP_SERVE_MEMORY_FRACTION, not by bytes"
    if plan.engine == "sglang" and fraction > _MOST_STATIC:
        yield (
            f"MEMLOOP_SERVE_MEMORY_FRACTION={fraction:g}: on SGLang it is of weights and cache alone, and above "
            f"{_MOST_STATIC} activations and graphs have no room: leave it out, and SGLang chooses"
        )
    if chunk is not None and seqs is not None and chunk < seqs:
        yield f"MEMLOOP_SERVE_PREFILL_CHUNK_TOKENS={chunk} leaves no token for each of {seqs} sequences"
    if settings.serve_speculation_tokens is not None and plan.speculation is None:
        yield "MEMLOOP_SERVE_SPECULATION_TOKENS is set, but speculation is off: MEMLOOP_SERVE_SPECULATION=ngram"


def _about_kernels(plan: EnginePlan) -> Iterator[str]:
    gpus = plan.tensor_parallel_size
    if plan.engine in ON_PROCESSORS:
        if plan.quantization:
            yield "MEMLOOP_SERVE_QUANTIZATION needs a GPU's kernels, and a processor has none"
        if gpus > 1:
            yield f"MEMLOOP_SERVE_TENSOR_PARALLEL_SIZE splits a model over GPUs, and {plan.engine} uses none"
        if plan.data_parallel_size > 1:
            yield f"MEMLOOP_SERVE_DATA_PARALLEL_SIZE copies a model to more GPUs, and {plan.engine} uses none"
    heads = attention_heads(Path(plan.model)) if plan.local else None
    if heads is not None and heads % gpus:
        yield f"MEMLOOP_SERVE_TENSOR_PARALLEL_SIZE={gpus} does not divide the model's {heads} attention heads"
    if plan.engine != "sglang":
        for name, value in (("QUANTIZATION", plan.quantization), ("LOAD_FORMAT", plan.load_format)):
            if value == _BITS:
                yield f"MEMLOOP_SERVE_{name}: vLLM has no bitsandbytes, SGLang has"
    elif plan.dtype == "float32" and "--attention-backend" not in plan.extra_args:
        yield "SGLang's attention kernels take no float32: MEMLOOP_SERVE_DTYPE=bfloat16"


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
    positions = positions_of(Path(plan.model), plan.yarn_factor) if plan.local else None
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
    elif plan.max_model_len is None:
        reasons.append(f"{plan.model} names no window in its config.json: set MEMLOOP_SERVE_MAX_MODEL_LEN")
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
