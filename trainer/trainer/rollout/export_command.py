"""``python -m trainer export``: a checkpoint of a run as Hugging Face files (bfloat16) that inference serves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memloop.profiles import ProfileError, load_profile
from trainer.rollout.export import ExportError, export_checkpoint


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the record as one line of JSON. Ends with 2 and the reason when the checkpoint cannot be exported."""
    chosen = _parser().parse_args(arguments)
    try:
        record = export_checkpoint(chosen.checkpoint, chosen.base, chosen.out, load_profile(chosen.profile))
    except (ExportError, ProfileError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(record.model_dump_json())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer export", description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="a folder global_step_N")
    parser.add_argument("--base", type=Path, required=True, help="the checkpoint that training started from")
    parser.add_argument("--profile", required=True, help="the profile that the run used")
    parser.add_argument("--out", type=Path, required=True, help="a folder that does not exist")
    return parser


if __name__ == "__main__":
    main()
