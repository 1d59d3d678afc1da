"""``memloop-evaluate fetch NAME --to DIR``: download a public file of a published benchmark; the last line is JSON."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from evaluation.fetch.download import FetchError, fetch
from evaluation.fetch.sources import SOURCES


def main(arguments: Sequence[str]) -> None:
    """Fetch a file, or list all with their licences. Exits with 1 when it cannot be had."""
    options = _parser().parse_args(arguments)
    if options.name is None:
        for name, source in SOURCES.items():
            print(f"{name:<20} {source.licence:<36} {source.url}")
        return
    source = SOURCES[options.name]
    print(f"{source.url}\nlicence: {source.licence}", file=sys.stderr)
    try:
        path, digest = fetch(source, options.to)
    except FetchError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    print(json.dumps({"benchmark": "fetch", "path": str(path), "sha256": digest, "licence": source.licence}))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memloop-evaluate fetch", description=__doc__)
    parser.add_argument("name", nargs="?", choices=list(SOURCES), help="the file; without a name, list all")
    parser.add_argument("--to", type=Path, default=Path(".memloop/data"), help="folder of the file")
    return parser
