"""``python -m trainer CAPABILITY …``: each capability has a command line of its own, loaded when it is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

CAPABILITIES: Final[Mapping[str, tuple[str, str]]] = {
    "data": ("trainer.data.command", "make data sets to train on"),
    "sft": ("trainer.sft.command", "fine-tune on conversations before RL"),
    "estimate": ("trainer.rollout.estimate_command", "estimate GPU memory and hours of a recipe"),
    "gate": ("trainer.gate.command", "measure a checkpoint beside the one that serves, and let it serve"),
    "export": ("trainer.rollout.export_command", "make a checkpoint of a run servable"),
    "tiny": ("trainer.tiny.__main__", "the tiny model: train it, evaluate it"),
    "tiny-rows": ("trainer.data.tiny_rows_command", "make the tiny world's data for reinforcement learning"),
    "train": ("trainer.rollout.train_command", "run a recipe of reinforcement learning"),
}
"""By name: the module whose ``main(arguments)`` it is, and what it does."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a capability with the arguments after its name. Ends with 2 without a known one."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] not in CAPABILITIES:
        asked_for_help = bool(given) and given[0] in ("-h", "--help")
        print(_usage(), file=sys.stdout if asked_for_help else sys.stderr)
        sys.exit(0 if asked_for_help else 2)
    module = importlib.import_module(CAPABILITIES[given[0]][0])
    cast(Callable[[Sequence[str]], None], module.main)(given[1:])


def _usage() -> str:
    lines = (f"  {name:<10} {help_}" for name, (_, help_) in CAPABILITIES.items())
    return "usage: python -m trainer CAPABILITY …\n\n" + "\n".join(lines)


if __name__ == "__main__":
    main()
