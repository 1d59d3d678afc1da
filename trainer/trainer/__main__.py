"""``python -m trainer CAPABILITY …``: each capability has its own command line and is imported only when chosen."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

CAPABILITIES: Final[Mapping[str, tuple[str, str, str]]] = {
    "data": ("trainer.data.command", "main", "make data sets to train on"),
    "sft": ("trainer.sft.command", "main", "fine-tune on conversations before RL"),
    "estimate": ("trainer.rollout.command", "estimate", "estimate GPU memory and hours of a recipe"),
    "gate": ("trainer.gate.command", "main", "measure a checkpoint beside the serving one, and approve it"),
    "export": ("trainer.rollout.command", "export", "export a run's checkpoint for serving"),
    "publish": ("trainer.rollout.publish", "publish", "upload an export, from where inference fetches it"),
    "promote": (
        "trainer.promotion.command",
        "main",
        "gate a published checkpoint, and move production to it step by step",
    ),
    "tiny": ("trainer.tiny.command", "main", "the tiny model: train it, evaluate it"),
    "train": ("trainer.rollout.command", "train", "run a recipe of reinforcement learning"),
}
"""By name: a module, its function that takes the arguments, and a help line."""

_EXTRAS: Final[Mapping[str, frozenset[str]]] = {
    "rl": frozenset({"hydra", "obstore", "omegaconf", "ray", "tensordict", "transfer_queue", "verl"}),
    "sft": frozenset({"datasets", "peft", "trl"}),
}
"""Packages by the extra of this distribution that installs them."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a capability with the arguments after its name.

    Exits with 2 if the name is missing or unknown, or the environment lacks a package that the capability needs.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] not in CAPABILITIES:
        asked_for_help = bool(given) and given[0] in ("-h", "--help")
        print(_usage(), file=sys.stdout if asked_for_help else sys.stderr)
        sys.exit(0 if asked_for_help else 2)
    try:
        _run(given[0], given[1:])
    except ModuleNotFoundError as error:
        print(_way_out(given[0], error), file=sys.stderr)
        sys.exit(2)


def _run(name: str, arguments: Sequence[str]) -> None:
    module, function, _ = CAPABILITIES[name]
    command: object = getattr(importlib.import_module(module), function)
    cast(Callable[[Sequence[str]], None], command)(arguments)


def _way_out(name: str, error: ModuleNotFoundError) -> str:
    """Explain how to install the missing package. Re-raises the error if none of our extras installs it."""
    package = (error.name or "").partition(".")[0]
    extra = next((extra for extra, packages in _EXTRAS.items() if package in packages), None)
    if extra is None:
        raise error
    return (
        f"`trainer {name}` needs {package}, which this environment lacks. In a checkout, `make setup-trainer` creates\n"
        f"an environment that has it: .venv-trainer/bin/python -m trainer {name} …\n"
        f"Elsewhere: pip install 'memloop-trainer[{extra}]'"
    )


def _usage() -> str:
    lines = (f"  {name:<10} {help_}" for name, (_, _, help_) in CAPABILITIES.items())
    return "usage: python -m trainer CAPABILITY …\n\n" + "\n".join(lines)


if __name__ == "__main__":
    main()
