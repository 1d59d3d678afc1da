"""``python -m trainer sft --recipe FILE [KEY=VALUE …]``: runs a recipe; the last line is one JSON object."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from trainer.data.measured import Stopwatch
from trainer.sft.recipe import RecipeError, SftRecipe, load_sft_recipe


def main(arguments: Sequence[str] | None = None) -> None:
    """Train. Exits with 2 when the recipe, the model or the data cannot be used."""
    parser = argparse.ArgumentParser(prog="trainer sft", description="fine-tune on conversations before RL")
    parser.add_argument("--recipe", type=Path, required=True)
    parser.add_argument("--check", action="store_true", help="only read the recipe")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE, as lora.rank=8")
    options = parser.parse_args(arguments)
    watch = Stopwatch()
    try:
        recipe = load_sft_recipe(options.recipe, tuple(options.overrides))
        facts = {} if options.check else _trained(recipe)
    except (RecipeError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(watch.line(command="sft", recipe=str(options.recipe), **facts))


def _trained(recipe: SftRecipe) -> dict[str, object]:
    from trainer.sft.train import fine_tune  # TRL's dependents are imported only for training

    return asdict(fine_tune(recipe))
