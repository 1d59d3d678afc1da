"""Copies checkpoints of a run on several machines to object storage and back.

Each training process writes its part to its own machine's disk. So each machine uploads its files (one of them uploads
a shared folder), and before a run resumes each machine downloads all files, because the new assignment is unknown.
"""

# ray and verl are partly untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from verl.trainer.ppo.checkpoint_callback import CheckpointCallback
from verl.utils.checkpoint.checkpoint_manager import find_latest_ckpt_path, get_checkpoint_tracker_filename

from trainer.checkpoint_store import CheckpointStore, StoreError, files_of, step_folder


class Kept(CheckpointCallback):
    """The class for ``trainer.checkpoint_callback_class``: verl calls it after each checkpoint."""

    def on_save(self, trainer: Any, global_step: int, checkpoint_dir: str, async_save: bool = False, **_: Any) -> None:
        """Upload the step, mark it, delete the oldest. Raises StoreError, which ends the run; the disk keeps its copy.

        The storage keeps as many steps as the disk (``trainer.max_actor_ckpt_to_keep``; null keeps all).
        """
        if async_save:
            raise StoreError("a checkpoint that is still being written cannot be uploaded: set async_save=false")
        config: Any = self.config
        url = str(config.memloop.checkpoints)
        keep_step(url, global_step, checkpoint_dir, newest=config.trainer.max_actor_ckpt_to_keep)


def keep_step(url: str, step: int, folder: str, *, newest: int | None) -> None:
    """Upload the step's folder from all machines. Raises StoreError."""
    store = CheckpointStore.at(url)
    store.begin(step)
    nodes = _nodes()
    files: dict[str, int] = {}
    owned: list[list[str]] = []
    for held in _on(nodes, _held, [(folder,)] * len(nodes)):
        owned.append(sorted(held.keys() - files.keys()))
        files |= {name: held[name] for name in owned[-1]}
    digests: dict[str, str] = {}
    for uploaded in _on(nodes, _put, [(url, step, folder, names) for names in owned]):
        digests |= uploaded
    store.finish(step, files, digests)
    if newest:
        store.keep_newest(newest)


def prepare(url: str, folder: Path, *, resume_mode: str) -> None:
    """Fetch the newest step under ``auto`` before a run looks for its checkpoint; ``resume_path`` names its own.

    Raises StoreError, also when the run starts from scratch (``disable``) and the storage holds another run's
    checkpoints.
    """
    if resume_mode == "auto":
        fetch_newest(url, folder)
    elif resume_mode == "disable":
        _refuse_others(url)


def fetch_newest(url: str, folder: Path) -> int | None:
    """Download the newest complete step to all machines, unless the disk has a newer one. Returns the step, or None.

    Raises StoreError.
    """
    steps = CheckpointStore.at(url).finished()
    if not steps or steps[-1] < _newest_here(folder):
        return None
    nodes = _nodes()
    _on(nodes, _fetch, [(url, steps[-1], str(folder / step_folder(steps[-1])))] * len(nodes))
    folder.mkdir(parents=True, exist_ok=True)
    Path(get_checkpoint_tracker_filename(str(folder))).write_text(str(steps[-1]), "utf-8")
    return steps[-1]


def _refuse_others(url: str) -> None:
    steps = CheckpointStore.at(url).finished()
    if steps:
        raise StoreError(f"{url} holds step {steps[-1]} of an earlier run: resume it, or name another place")


def _newest_here(folder: Path) -> int:
    found = find_latest_ckpt_path(str(folder))
    return int(found.rsplit("_", 1)[1]) if found else -1


def _nodes() -> list[str]:
    return [node["NodeID"] for node in ray.nodes() if node["Alive"]]


def _on(nodes: Sequence[str], task: Any, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run the task on each machine and return the results."""
    strategies = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
    placed = zip(strategies, arguments, strict=True)
    return ray.get([task.options(scheduling_strategy=where).remote(*given) for where, given in placed])


@ray.remote(num_cpus=0, max_retries=0)
def _held(folder: str) -> dict[str, int]:
    return files_of(Path(folder))


@ray.remote(num_cpus=0, max_retries=0)
def _put(url: str, step: int, folder: str, names: list[str]) -> dict[str, str]:
    return CheckpointStore.at(url).put(step, Path(folder), names)


@ray.remote(num_cpus=0, max_retries=0)
def _fetch(url: str, step: int, folder: str) -> int:
    return CheckpointStore.at(url).fetch(step, Path(folder))
