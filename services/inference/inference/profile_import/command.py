"""The ``profile import`` command."""

import argparse
import sys
from pathlib import Path

from inference.profile_import.imported import KINDS
from inference.profile_import.importing import import_prompts, write_profile
from inference.profile_import.sources import ImportRefused
from memloop.profiles import load_profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    commands = parser.add_subparsers(dest="profile_command", required=True)
    importing = commands.add_parser("import", help="take a published checkpoint's own prompts from your copy of it")
    importing.add_argument("kind", choices=KINDS, help="the published project, and the place of its prompts")
    importing.add_argument(
        "--from",
        dest="source",
        type=Path,
        required=True,
        metavar="SNAPSHOT_OR_CHECKOUT",
        help="folder of the checkpoint, with its README.md, or of the project's code",
    )
    importing.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="new folder for the profile")


def run(arguments: argparse.Namespace) -> int:
    """Import, print what was taken, and return the exit status: 2 when the source is refused."""
    target: Path = arguments.to
    try:
        imported = import_prompts(arguments.kind, arguments.source)
        write_profile(imported, target)
    except ImportRefused as refusal:
        print(f"not imported: {refusal}", file=sys.stderr)
        return 2
    rows = [f"from  {source.sha256}  {source.name}" for source in imported.sources]
    rows += [f"text  {len(text.encode()):>6} bytes  {name}" for name, text in imported.texts.items()]
    rows += [f"left  {text}" for text in imported.left]
    print("\n".join([*rows, f"profile {load_profile(target).ref} in {target}"]))
    return 0
