"""``python -m trainer estimate``: GPU memory and hours of a recipe, on paper. Needs no accelerator."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from trainer.estimate.hardware import GpuName
from trainer.estimate.hours import hours_of
from trainer.estimate.memory import memory_of
from trainer.estimate.report import TABLE_HEAD, table_row, told
from trainer.rollout.recipe import Composed, load_recipe
from trainer.rollout.sizes import run_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Ends with 1 when a recipe does not fit its GPUs, with 2 and the reason when it cannot be estimated."""
    chosen = _parser().parse_args(arguments)
    overrides = [*chosen.overrides, *([f"estimate.gpu={chosen.gpu}"] if chosen.gpu else [])]
    try:
        recipes = _recipes(chosen.recipe, overrides)
        if chosen.table:
            print(TABLE_HEAD)
        fitting = [_tell(file, recipe, table=chosen.table) for file, recipe in recipes]
    except ValueError as error:
        print(f"{error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(0 if all(fitting) else 1)


def _recipes(named: Path, overrides: Sequence[str]) -> list[tuple[Path, Composed]]:
    """Those for GPUs. Raises RecipeError, and ValueError when there is none."""
    files = sorted(named.glob("*.yaml")) if named.is_dir() else [named]
    loaded = [(file, load_recipe(file, overrides)) for file in files]
    on_gpus = [(file, recipe) for file, recipe in loaded if recipe.config.trainer.device != "cpu"]
    if not on_gpus:
        raise ValueError(f"{named}: nothing trains on a GPU there")
    return on_gpus


def _tell(file: Path, recipe: Composed, *, table: bool) -> bool:
    """Print one; whether it fits."""
    run, assumed = run_of(recipe), recipe.assumptions
    memory = memory_of(run, assumed)
    hours = hours_of(run, memory, assumed) if memory.cached_rows else None
    if table and hours:
        print(table_row(file.stem, memory, hours, assumed))
    else:
        print("\n".join(told(file.stem, memory, hours, assumed)))
    return memory.fits


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer estimate", description=__doc__)
    parser.add_argument("--recipe", type=Path, required=True, help="a file of trainer/recipes, or a folder of them")
    parser.add_argument("--gpu", choices=get_args(GpuName), help="another GPU than the recipe names")
    parser.add_argument("--table", action="store_true", help="one row of a Markdown table for each")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE of verl's configuration, memloop.KEY or estimate.KEY")
    return parser


if __name__ == "__main__":
    main()
