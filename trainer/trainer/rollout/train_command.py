"""``python -m trainer train``: runs a recipe, or has verl check it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trainer.rollout.recipe import RecipeError, load_recipe
from trainer.rollout.train import check, train


def main(arguments: Sequence[str] | None = None) -> None:
    """Ends with 2 and the reason when the recipe cannot be run."""
    chosen = _parser().parse_args(arguments)
    try:
        recipe = load_recipe(chosen.recipe, chosen.overrides)
        check(recipe)
    except (RecipeError, AssertionError, ValueError) as error:
        print(f"{chosen.recipe}: {error}", file=sys.stderr)
        sys.exit(2)
    if not chosen.check:
        train(recipe)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer train", description=__doc__)
    parser.add_argument("--recipe", type=Path, required=True, help="a file of trainer/recipes")
    parser.add_argument("--check", action="store_true", help="compose the configuration, have verl check it, and stop")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE of verl's configuration, or memloop.KEY=VALUE")
    return parser


if __name__ == "__main__":
    main()
