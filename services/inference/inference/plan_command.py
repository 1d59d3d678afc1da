"""The ``plan`` command: prints command line, memory and warnings, also for hardware that is not present."""

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from inference.engines import BUILDERS, EnginePlan
from inference.estimate import GIB, Estimate, Hardware, estimate, runtime_bytes, shape_of
from inference.machine import ENGINES, Machine
from inference.plan import card_of, plan_engine
from inference.prompts import OWN_PROMPTS, PromptsMissing, form_warnings, profile_of, prompt_warnings
from inference.registry import MODELS_FILE, ModelCard, ModelShape, read_registry
from inference.settings import LauncherSettings, SettingsRefused, read_settings
from inference.window import fitted_profile
from memloop.profiles import sizes

_GPU_GIB: dict[str, float] = {
    "t4": 16,
    "l4": 24,
    "a10g": 24,
    "rtx4090": 24,
    "l40s": 48,
    "a100-40": 40,
    "a100-80": 80,
    "h100": 80,
    "h200": 141,
    "b200": 180,
    "mi300x": 192,
}
"""Memory of known GPUs, as stated by the makers; a plan does not need the GPU itself."""
_ANYTHING = frozenset(ENGINES)
_BUSY_SEQUENCES = 32
_REFUSES = "the launcher would refuse to start: {}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments; the launcher's settings give everything else."""
    parser.add_argument("model", nargs="*", help="rows of the registry; default: MEMLOOP_MODEL")
    parser.add_argument("--all", action="store_true", help="every row of the registry")
    parser.add_argument("--gpu", choices=sorted(_GPU_GIB), help="plan for this GPU")
    parser.add_argument("--gpu-memory-gib", type=float, help="plan for a GPU with this much memory, in GiB")


def run(arguments: argparse.Namespace) -> int:
    """Print the plans and return the exit status. Raises SettingsRefused, RegistryError."""
    settings = read_settings(os.environ)
    cards = read_registry(settings.models_file or MODELS_FILE)
    models = list(cards) if arguments.all else (arguments.model or [settings.model])
    gib = _GPU_GIB[arguments.gpu] if arguments.gpu else arguments.gpu_memory_gib
    plans = [plan_text(settings.model_copy(update={"model": model}), cards, gpu_gib=gib) for model in models]
    print("\n\n".join(plans))
    return 0


def plan_text(settings: LauncherSettings, cards: Mapping[str, ModelCard], *, gpu_gib: float | None) -> str:
    """Return the plan of one model as text; ``gpu_gib`` None plans for this machine. Raises SettingsRefused."""
    card = cards.get(settings.model)
    homeless = card is not None and card.source is None and settings.model_path is None
    if card is not None and homeless:
        cards = {**cards, settings.model: card.model_copy(update={"source": f"FOLDER/OF/{settings.model}"})}
    here = gpu_gib is None and settings.engine in ("auto", "vllm-cpu")
    machine = Machine.look() if here else Machine(has_gpu=True, installed=_ANYTHING)
    missing: list[str] = []
    try:
        plan = plan_engine(settings, cards, machine)
    except PromptsMissing as without:  # a plan is shown all the same, with Memloop's own prompts
        missing = [_REFUSES.format(without)]
        plan = plan_engine(settings.model_copy(update={"profile": OWN_PROMPTS}), cards, machine)
    shape = (shape_of(Path(plan.model)) if plan.local else None) or (card.shape if card else None)
    hardware = Hardware(round(gpu_gib * GIB), plan.tensor_parallel_size * plan.data_parallel_size) if gpu_gib else None
    profile = profile_of(plan)
    fitted = fitted_profile(plan, profile)
    memory = estimate(plan, shape, hardware, call_tokens=fitted.budget.window_tokens) if shape else None
    warnings = [*missing, *_warnings(plan, shape, memory)]
    warnings += [] if missing else prompt_warnings(card_of(settings, cards), profile)
    try:
        warnings += form_warnings(plan, profile)
    except SettingsRefused as refusal:
        warnings.append(_REFUSES.format(refusal))
    if homeless:
        warnings.append("the location of its weights is unknown: set MEMLOOP_MODEL_PATH to their folder")
    budget = f"budget    window {fitted.budget.most_tokens} tokens: {sizes(fitted, profile)}"
    command = BUILDERS[plan.engine](plan)
    key = {name: "***" for name, value in command.environment.items() if value == plan.api_key}
    environment = {**command.defaults, **command.environment, **key}
    rows = [
        f"model     {settings.model} on {plan.engine}, profile {profile.ref}",
        f"command   {command.shown()}",
        "with      " + " ".join(f"{name}={value}" for name, value in sorted(environment.items())),
        budget,
        *_memory(plan, memory, hardware),
    ]
    return "\n".join([*rows, *(f"warning   {warning}" for warning in warnings)])


def _memory(plan: EnginePlan, memory: Estimate | None, hardware: Hardware | None) -> Iterator[str]:
    if memory is None:
        yield "memory    unknown: the registry row has no shape and the checkpoint is not on disk"
        return
    place = ""
    if hardware is not None and plan.kv_cache_memory_bytes is None:
        runtime = _size(runtime_bytes(plan, hardware))
        place = f" ({hardware.gpus} × {_size(hardware.gpu_bytes)}, {runtime} of each assumed for the runtime)"
    yield f"weights   {_size(memory.weights)} in all"
    yield f"cache     {_size(memory.per_token)} per token, {_size(memory.cache)} in all{place}"
    yield f"chunks    {memory.chunks_at_once} at once, each of the profile's window of {memory.call_tokens} tokens"


def _warnings(plan: EnginePlan, shape: ModelShape | None, memory: Estimate | None) -> Iterator[str]:
    gpus, seqs = plan.tensor_parallel_size, plan.max_num_seqs or 0
    if shape is not None and (shape.heads or 0) % gpus:
        yield f"{shape.heads} attention heads do not divide by {gpus} GPUs: the engine will refuse"
    elif shape is not None and shape.kv_heads % gpus:
        yield f"{shape.kv_heads} KV heads do not divide by {gpus} GPUs: each keeps copies"
    if memory is not None and memory.cache <= 0:
        yield "the weights leave no room for a cache: a larger GPU, more of them, or quantisation"
    elif memory is not None and memory.chunks_at_once == 0:
        yield "the cache does not hold one whole window"
    elif memory is not None and seqs > memory.chunks_at_once:
        yield f"the cache holds fewer windows than the {seqs} sequences that may run: it will preempt"
    if not plan.prefix_caching:
        yield "without prefix caching every question over one chunk computes the chunk again"
    if plan.speculation and seqs > _BUSY_SEQUENCES:
        yield f"speculation helps a lone read; with {seqs} sequences its guesses cost more than they save"
    if plan.speculation and plan.engine == "sglang":
        yield "SGLang guesses only what the same process has written before, for any request: never text of a prompt"


def _size(count: int) -> str:
    for unit, size in (("GiB", GIB), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
