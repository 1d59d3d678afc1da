"""The ``fetch`` command: loads a published checkpoint into the model cache, before the engine starts."""

import argparse
import sys
import time
from pathlib import Path

from inference.fetch import FetchError, fetch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("url", help="where `python -m trainer publish` put it: s3://bucket/folder, gs://…, file:///…")
    parser.add_argument("folder", type=Path, help="of the model cache; MEMLOOP_MODEL_PATH then names it")


def run(arguments: argparse.Namespace) -> int:
    """Fetch, and print what was loaded. Returns 1 with a reason when that failed; run it again to resume."""
    began = time.monotonic()
    try:
        fetched = fetch(arguments.url, arguments.folder)
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    seconds = time.monotonic() - began
    print(
        f"{arguments.folder}: {fetched.files} files, {fetched.loaded_bytes / 1e6:.1f} MB loaded in {seconds:.1f} s, "
        f"{fetched.kept_bytes / 1e6:.1f} MB there already"
    )
    return 0
