"""The ``plan`` command: prints command line, memory and warnings, also for hardware that is not present."""

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from inference.budgets import fitted_profile
from inference.engines import BUILDERS, EnginePlan
from inference.estimate import GIB, Estimate, Hardware, estimate, runtime_bytes, shape_of
from inference.gpus import GPU_GIB
from inference.machine import ENGINES, Machine
from inference.plan import card_of, plan_engine
from inference.prompts import OWN_PROMPTS, PromptsMissing, form_warnings, profile_of, prompt_warnings
from inference.registry import MODELS_FILE, ModelCard, ModelShape, read_registry
from inference.settings import LauncherSettings, SettingsRefused, read_settings
from memloop.profiles import Profile, sizes

_ANYTHING = frozenset(ENGINES)
_BUSY_SEQUENCES = 32
_REFUSES = "the launcher would refuse to start: {}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments; the launcher's settings give everything else."""
    parser.add_argument("model", nargs="*", help="rows of the registry; default: MEMLOOP_MODEL")
    parser.add_argument("--all", action="store_true", help="every row of the registry")
    parser.add_argument("--gpu", choices=sorted(GPU_GIB), help="plan for this GPU")
    parser.add_argument("--gpu-memory-gib", type=float, help="plan for a GPU with this much memory, in GiB")


def run(arguments: argparse.Namespace) -> int:
    """Print the plans and return the exit status. Raises SettingsRefused, RegistryError."""
    settings = read_settings(os.environ)
    cards = read_registry(settings.models_file or MODELS_FILE)
    models = list(cards) if arguments.all else (arguments.model or [settings.model])
    gib = GPU_GIB[arguments.gpu] if arguments.gpu else arguments.gpu_memory_gib
    plans = [plan_text(settings.model_copy(update={"model": model}), cards, gpu_gib=gib) for model in models]
    print("\n\n".join(plans))
    return 0


def plan_text(settings: LauncherSettings, cards: Mapping[str, ModelCard], *, gpu_gib: float | None) -> str:
    """Return the plan of one model as text; ``gpu_gib`` None plans for this machine. Raises SettingsRefused."""
    card = cards.get(settings.model)
    homeless = card is not None and card.source is None and settings.model_path is None
    if card is not None and homeless:
        cards = {**cards, settings.model: card.model_copy(update={"source": f"FOLDER/OF/{settings.model}"})}
    plan, missing = _plan(settings, cards, _machine(settings, gpu_gib))
    shape = (shape_of(Path(plan.model)) if plan.local else None) or (card.shape if card else None)
    hardware = Hardware(round(gpu_gib * GIB), plan.tensor_parallel_size * plan.data_parallel_size) if gpu_gib else None
    profile = profile_of(plan)
    fitted = fitted_profile(plan, profile)
    memory = estimate(plan, shape, hardware, call_tokens=fitted.budget.window_tokens) if shape else None
    warnings = [*missing, *_about_shape(plan, shape), *_about_memory(plan, memory), *_about_speed(plan)]
    warnings += [] if missing else prompt_warnings(card_of(settings, cards), profile)
    try:
        warnings += form_warnings(plan, profile)
    except SettingsRefused as refusal:
        warnings.append(_REFUSES.format(refusal))
    if homeless:
        warnings.append("the location of its weights is unknown: set MEMLOOP_MODEL_PATH to their folder")
    budget = f"budget    window {fitted.budget.most_tokens} tokens: {sizes(fitted, profile)}"
    rows = [*_what(settings, plan, profile), budget, *_memory(plan, memory, hardware)]
    return "\n".join([*rows, *(f"warning   {warning}" for warning in warnings)])


def _plan(settings: LauncherSettings, cards: Mapping[str, ModelCard], machine: Machine) -> tuple[EnginePlan, list[str]]:
    """Return the plan, with Memloop's own prompts and a warning where a start would be refused for want of others."""
    try:
        return plan_engine(settings, cards, machine), []
    except PromptsMissing as missing:
        own = settings.model_copy(update={"profile": OWN_PROMPTS})
        return plan_engine(own, cards, machine), [_REFUSES.format(missing)]


def _machine(settings: LauncherSettings, gpu_gib: float | None) -> Machine:
    """Return the machine to plan for: this one, or one with a GPU and every engine."""
    if gpu_gib is None and settings.engine in ("auto", "vllm-cpu"):
        return Machine.look()
    return Machine(has_gpu=True, installed=_ANYTHING)


def _what(settings: LauncherSettings, plan: EnginePlan, profile: Profile) -> Iterator[str]:
    command = BUILDERS[plan.engine](plan)
    key = {name: "***" for name, value in command.environment.items() if value == plan.api_key}
    environment = {**command.defaults, **command.environment, **key}
    yield f"model     {settings.model} on {plan.engine}, profile {profile.ref}"
    yield f"command   {command.shown()}"
    yield "with      " + " ".join(f"{name}={value}" for name, value in sorted(environment.items()))


def _memory(plan: EnginePlan, memory: Estimate | None, hardware: Hardware | None) -> Iterator[str]:
    if memory is None:
        yield "memory    unknown: the registry row has no shape and the checkpoint is not on disk"
        return
    yield f"weights   {_size(memory.weights)} in all"
    yield f"cache     {_size(memory.per_token)} per token, {_size(memory.cache)} in all{_place(plan, hardware)}"
    yield f"chunks    {memory.chunks_at_once} at once, each of the profile's window of {memory.call_tokens} tokens"


def _place(plan: EnginePlan, hardware: Hardware | None) -> str:
    if hardware is None or plan.kv_cache_memory_bytes is not None:
        return ""
    runtime = _size(runtime_bytes(plan, hardware))
    return f" ({hardware.gpus} × {_size(hardware.gpu_bytes)}, {runtime} of each assumed for the runtime)"


def _about_shape(plan: EnginePlan, shape: ModelShape | None) -> Iterator[str]:
    if shape is not None and (shape.heads or 0) % plan.tensor_parallel_size:
        yield f"{shape.heads} attention heads do not divide by {plan.tensor_parallel_size} GPUs: the engine will refuse"
    elif shape is not None and shape.kv_heads % plan.tensor_parallel_size:
        yield f"{shape.kv_heads} KV heads do not divide by {plan.tensor_parallel_size} GPUs: each keeps copies"


def _about_memory(plan: EnginePlan, memory: Estimate | None) -> Iterator[str]:
    if memory is None:
        return
    if memory.cache <= 0:
        yield "the weights leave no room for a cache: a larger GPU, more of them, or quantisation"
    elif memory.chunks_at_once == 0:
        yield "the cache does not hold one whole window"
    elif plan.max_num_seqs and plan.max_num_seqs > memory.chunks_at_once:
        yield f"the cache holds fewer windows than the {plan.max_num_seqs} sequences that may run: it will preempt"


def _about_speed(plan: EnginePlan) -> Iterator[str]:
    if not plan.prefix_caching:
        yield "without prefix caching every question over one chunk computes the chunk again"
    if plan.speculation and (plan.max_num_seqs or 0) > _BUSY_SEQUENCES:
        yield f"speculation helps a lone read; with {plan.max_num_seqs} sequences its guesses cost more than they save"
    if plan.speculation and plan.engine == "sglang":
        yield "SGLang guesses only what the same process has written before, for any request: never text of a prompt"


def _size(count: int) -> str:
    for unit, size in (("GiB", GIB), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
