"""``python -m trainer train | export | estimate``: runs a recipe, exports its checkpoint, estimates its cost.

Hydra and verl are imported only to read a recipe: every ``--help``, and an export without a recipe, work anywhere.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from memloop.profiles import Profile, ProfileError, load_profile
from memloop.wire.checkpoint import TrainedBy
from trainer.estimate.hardware import GpuName
from trainer.estimate.hours import hours_of
from trainer.estimate.memory import memory_of
from trainer.estimate.report import TABLE_HEAD, lines_of, table_row
from trainer.rollout.export import export_checkpoint
from trainer.rollout.export_record import ExportError

if TYPE_CHECKING:
    from trainer.rollout.recipe import Composed


def train(arguments: Sequence[str] | None = None) -> None:
    """Run a recipe, or check it with verl. Exits with 2 and every reason when the recipe cannot be run."""
    chosen = _train_parser().parse_args(arguments)
    from trainer.rollout.recipe import RecipeError, load_recipe
    from trainer.rollout.train import check, preflight
    from trainer.rollout.train import train as run

    try:
        recipe = load_recipe(chosen.recipe, chosen.overrides)
        check(recipe)
        reasons = [] if chosen.check else preflight(recipe)
    except (RecipeError, AssertionError, ValueError) as error:
        print(f"{chosen.recipe}: {error}", file=sys.stderr)
        sys.exit(2)
    if reasons:
        print("\n".join(f"{chosen.recipe}: {reason}" for reason in reasons), file=sys.stderr)
        sys.exit(2)
    if not (chosen.check or chosen.preflight):
        run(recipe)


def _train_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer train", description="Run a recipe on verl.")
    parser.add_argument("--recipe", type=Path, required=True, help="a file of trainer/recipes")
    parser.add_argument("--check", action="store_true", help="compose the configuration, check it with verl, and stop")
    parser.add_argument(
        "--preflight", action="store_true", help="check also rows, checkpoint, devices, packages and disk, and stop"
    )
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE of verl's configuration, or memloop.KEY=VALUE")
    return parser


def export(arguments: Sequence[str] | None = None) -> None:
    """Export a checkpoint as Hugging Face files (bfloat16), and print its record as one line of JSON.

    Exits with 2 and the reason when the checkpoint cannot be exported.
    """
    chosen = _export_parser().parse_args(arguments)
    try:
        profile, recipe = load_profile(chosen.profile), chosen.recipe
        by = trained_by(recipe, chosen.overrides, chosen.checkpoint, profile) if recipe else None
        record = export_checkpoint(chosen.checkpoint, chosen.base, chosen.out, profile, trained_by=by)
    except (ExportError, ProfileError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(record.model_dump_json())


def trained_by(recipe: Path, overrides: Sequence[str], checkpoint: Path, profile: Profile) -> TrainedBy:
    """Return the recipe's training facts. Raises RecipeError, and ExportError for another checkpoint or profile."""
    from trainer.rollout.recipe import load_recipe

    composed = load_recipe(recipe, overrides)
    config, settings = composed.config, composed.settings
    where = Path(config.trainer.default_local_dir)
    if where.resolve() != checkpoint.resolve().parent:
        raise ExportError(f"{recipe} writes to {where}, not where {checkpoint} is: give the overrides of the run too")
    if settings.profile_hash != profile.content_hash:
        raise ExportError(f"{recipe} trains with the profile {settings.loaded().ref}, not with {profile.ref}")
    files = config.data.train_files
    writes = config.actor_rollout_ref.rollout.agent.default_agent_loop == "memreader"
    return TrainedBy(
        recipe=recipe.name,
        objective=settings.objective,
        reward=settings.agent or (settings.decisions if writes else settings.reward),
        data=(files,) if isinstance(files, str) else tuple(map(str, files)),
    )


def _export_parser() -> argparse.ArgumentParser:
    about = "Export a checkpoint of a run as Hugging Face files (bfloat16) that inference serves."
    parser = argparse.ArgumentParser(prog="python -m trainer export", description=about)
    parser.add_argument("--checkpoint", type=Path, required=True, help="a folder global_step_N")
    parser.add_argument("--base", type=Path, required=True, help="the checkpoint that training started from")
    parser.add_argument("--profile", required=True, help="the profile that the run used")
    parser.add_argument("--out", type=Path, required=True, help="a folder that does not exist")
    parser.add_argument("--recipe", type=Path, help="the run's recipe, for export.json and the model card")
    parser.add_argument("overrides", nargs="*", help="the run's own KEY=VALUE of the recipe")
    return parser


def estimate(arguments: Sequence[str] | None = None) -> None:
    """Estimate GPU memory and hours of recipes.

    Exits with 1 when a recipe does not fit its GPUs, with 2 and the reason when it cannot be estimated.
    """
    chosen = _estimate_parser().parse_args(arguments)
    overrides = [*chosen.overrides, *([f"estimate.gpu={chosen.gpu}"] if chosen.gpu else [])]
    try:
        recipes = _recipes(chosen.recipe, overrides)
        if chosen.table:
            print(TABLE_HEAD)
        fitting = [_print_memory(file, recipe, table=chosen.table) for file, recipe in recipes]
    except ValueError as error:
        print(f"{error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(0 if all(fitting) else 1)


def _recipes(named: Path, overrides: Sequence[str]) -> list[tuple[Path, Composed]]:
    """Return the recipes for GPUs. Raises RecipeError, and ValueError when there is none."""
    from trainer.rollout.recipe import load_recipe

    files = sorted(named.glob("*.yaml")) if named.is_dir() else [named]
    loaded = [(file, load_recipe(file, overrides)) for file in files]
    on_gpus = [(file, recipe) for file, recipe in loaded if recipe.config.trainer.device != "cpu"]
    if not on_gpus:
        raise ValueError(f"{named}: no recipe there trains on a GPU")
    return on_gpus


def _print_memory(file: Path, recipe: Composed, *, table: bool) -> bool:
    """Print one estimate; return whether it fits."""
    from trainer.rollout.sizes import run_of

    run, assumed = run_of(recipe), recipe.assumptions
    memory = memory_of(run, assumed)
    hours = hours_of(run, memory, assumed) if memory.cached_rows else None
    if table and hours:
        print(table_row(file.stem, memory, hours, assumed))
    else:
        print("\n".join(lines_of(file.stem, memory, hours, assumed)))
    return memory.fits


def _estimate_parser() -> argparse.ArgumentParser:
    about = "Estimate GPU memory and hours of a recipe on paper. Needs no accelerator."
    parser = argparse.ArgumentParser(prog="python -m trainer estimate", description=about)
    parser.add_argument("--recipe", type=Path, required=True, help="a file of trainer/recipes, or a folder of them")
    parser.add_argument("--gpu", choices=get_args(GpuName), help="override the recipe's GPU")
    parser.add_argument("--table", action="store_true", help="one row of a Markdown table per recipe")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE of verl's configuration, memloop.KEY or estimate.KEY")
    return parser
