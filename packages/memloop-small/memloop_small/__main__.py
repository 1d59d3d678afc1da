"""``python -m memloop_small base | merge | ship | cache``: makes the small model of its parts."""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from pathlib import Path

from memloop_small.base import FILE, BaseError, make_base
from memloop_small.merge import merge
from memloop_small.shipped import ShippedError, make_cached, make_shipped, ship


def main() -> None:
    """Run one command. A signal to end removes what is half made."""
    parser = argparse.ArgumentParser(prog="memloop_small")
    commands = parser.add_subparsers(dest="command", required=True)
    base = commands.add_parser("base", help="make the base's folder")
    merging = commands.add_parser("merge", help="add an adapter to the base")
    merging.add_argument("--base", type=Path, required=True)
    merging.add_argument("--adapter", type=Path, required=True)
    shipping = commands.add_parser("ship", help="make the served model of the base and the adapter here")
    shipping.add_argument("--adapter", type=Path, help="takes the place of the one here")
    shipping.add_argument("--run", default="", help="what made it, for the record: recipe, tokens, seed, data")
    cache = commands.add_parser("cache", help="make the folder for engines without torch, unless it is there")
    for command in (base, merging, shipping, cache):
        command.add_argument("folder", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)
    try:
        match options.command:
            case "base":
                make_base(FILE, options.folder)
            case "merge":
                merge(options.base, options.adapter, options.folder)
            case "ship" if options.adapter:
                print(ship(options.adapter, options.folder, run=options.run).model_dump_json())
            case "ship":
                make_shipped(options.folder)
            case _:
                make_cached(options.folder, partial(print, flush=True))
    except (BaseError, ShippedError, OSError) as error:
        sys.exit(f"memloop-small cannot be made: {error}")


def _end(number: int, frame: object) -> None:
    del frame
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
