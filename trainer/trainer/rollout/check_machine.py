"""Looks at the machine before a run takes it: devices, installed packages, disk."""

# omegaconf is largely untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from trainer.estimate.shapes import UnknownShape, shape_of
from trainer.rollout.placement import Demand, Node
from trainer.rollout.recipe import Composed

_LOGGERS: Final[Mapping[str, str]] = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow"}
_ENGINES: Final[Mapping[str, str]] = {"vllm": "vllm", "sglang": "sglang"}
_MEGATRON: Final = ("megatron", "transformer_engine")
_FLASH: Final = "flash_attention_2"
_SAVED_BYTES, _ADAPTED_BYTES = 12, 4
"""Of a parameter in a checkpoint: float32 weights with both of Adam's moments, or without them under an adapter."""


def _devices() -> int:
    import torch

    return torch.cuda.device_count()


def _installed(module: str) -> bool:
    return find_spec(module) is not None


@dataclass(frozen=True, slots=True)
class Machine:
    """What a run finds: the number of GPUs, the importable packages, the free bytes beside a path."""

    devices: Callable[[], int] = _devices
    installed: Callable[[str], bool] = _installed
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free


THIS: Final = Machine()


def check_machine(recipe: Composed, machine: Machine = THIS) -> Iterator[str]:
    """Yield every reason why the recipe cannot run here. :mod:`trainer.rollout.check_cluster` looks at a cluster's."""
    yield from _gpus(recipe.config, machine)
    yield from _packages(recipe.config, machine)
    yield from _disk(recipe, machine)


def _gpus(config: Any, machine: Machine) -> Iterator[str]:
    wanted = config.trainer.n_gpus_per_node
    if os.environ.get("RAY_ADDRESS") or config.trainer.device != "cuda":
        return
    if config.trainer.nnodes > 1:
        yield f"trainer.nnodes={config.trainer.nnodes} needs a Ray cluster: RAY_ADDRESS is not set"
    if (found := machine.devices()) < wanted:
        yield f"trainer.n_gpus_per_node={wanted}, but this machine has {found}"
    elif (cpus := config.ray_kwargs.ray_init.num_cpus) and (reason := Demand.of(config).shortfall([Node(cpus, found)])):
        yield reason


def _packages(config: Any, machine: Machine) -> Iterator[str]:
    parts = config.actor_rollout_ref
    needed = {f"trainer.logger={name}": _LOGGERS[name] for name in config.trainer.logger if name in _LOGGERS}
    if parts.rollout.name in _ENGINES:
        needed[f"actor_rollout_ref.rollout.name={parts.rollout.name}"] = _ENGINES[parts.rollout.name]
    if parts.actor.strategy == "megatron":
        needed |= {f"model_engine=megatron ({package})": package for package in _MEGATRON}
    elif _attention(config) == _FLASH:
        needed[f"attn_implementation={_FLASH} (without it: sdpa, and use_remove_padding=false)"] = "flash_attn"
    for setting, package in needed.items():
        if not machine.installed(package):
            yield f"{setting} needs the package {package}, which is not installed"


def _attention(config: Any) -> str:
    """Return the implementation that verl takes: flash-attn unless the recipe names another one."""
    return str((config.actor_rollout_ref.model.override_config or {}).get("attn_implementation", _FLASH))


def _disk(recipe: Composed, machine: Machine) -> Iterator[str]:
    config: Any = recipe.config
    folder = Path(config.trainer.default_local_dir).absolute()
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield f"trainer.default_local_dir={folder} cannot be written ({existing})"
        return
    needed = _checkpoint_bytes(recipe)
    if config.trainer.save_freq > 0 and (free := machine.free_bytes(existing)) < needed:
        gigabytes = f"{free / 1e9:.1f} GB free, its checkpoints need {needed / 1e9:.1f}"
        yield f"trainer.default_local_dir={folder} has {gigabytes}"


def _checkpoint_bytes(recipe: Composed) -> int:
    """Return the size of this machine's share of the kept checkpoints and of the one being written; 0 if unknown."""
    config: Any = recipe.config
    model = config.actor_rollout_ref.model
    try:
        parameters = shape_of(recipe.assumptions.model or str(model.path)).parameters
    except UnknownShape:
        return 0
    each = parameters * (_ADAPTED_BYTES if model.lora_rank else _SAVED_BYTES) // config.trainer.nnodes
    return each * ((config.trainer.max_actor_ckpt_to_keep or 1) + 1)
