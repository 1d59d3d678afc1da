"""``python -m trainer export``: a checkpoint of a run as Hugging Face files (bfloat16) that inference serves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memloop.profiles import Profile, ProfileError, load_profile
from memloop.wire.checkpoint import TrainedBy
from trainer.rollout.export import export_checkpoint
from trainer.rollout.export_record import ExportError


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the record as one line of JSON. Ends with 2 and the reason when the checkpoint cannot be exported."""
    chosen = _parser().parse_args(arguments)
    try:
        profile, recipe = load_profile(chosen.profile), chosen.recipe
        by = trained_by(recipe, chosen.overrides, chosen.checkpoint, profile) if recipe else None
        record = export_checkpoint(chosen.checkpoint, chosen.base, chosen.out, profile, trained_by=by)
    except (ExportError, ProfileError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(record.model_dump_json())


def trained_by(recipe: Path, overrides: Sequence[str], checkpoint: Path, profile: Profile) -> TrainedBy:
    """What the recipe did. Raises RecipeError, and ExportError when the checkpoint or the profile is not its own."""
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
        reward=settings.decisions if writes else settings.reward,
        data=(files,) if isinstance(files, str) else tuple(map(str, files)),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer export", description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="a folder global_step_N")
    parser.add_argument("--base", type=Path, required=True, help="the checkpoint that training started from")
    parser.add_argument("--profile", required=True, help="the profile that the run used")
    parser.add_argument("--out", type=Path, required=True, help="a folder that does not exist")
    parser.add_argument("--recipe", type=Path, help="the run's recipe, for export.json and the model card")
    parser.add_argument("overrides", nargs="*", help="the run's own KEY=VALUE of the recipe")
    return parser


if __name__ == "__main__":
    main()
