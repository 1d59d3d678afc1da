"""Packages the chart, and pushes it to an OCI registry if one is named.

    python -m deploy.helm.publish dist
    python -m deploy.helm.publish dist --to oci://registry.example.com/charts

Credentials are those of ``helm registry login`` or ``docker login``.
"""

import argparse
from pathlib import Path

import helm_python as helm

CHART = Path(__file__).parents[1] / "memloop"


def main() -> None:
    """Print the archive, and the pushed reference."""
    parser = argparse.ArgumentParser(prog="python -m deploy.helm.publish", description="Package and push the chart.")
    parser.add_argument("folder", type=Path, help="where the archive is written")
    parser.add_argument("--to", default="", help="oci://registry/path")
    parser.add_argument("--plain-http", action="store_true", help="for a registry without TLS")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    archive = helm.package(str(CHART), destination=str(arguments.folder))
    print(archive)
    if arguments.to:
        pushed = helm.push(archive, arguments.to, plain_http=arguments.plain_http)
        print(pushed.get("ref") or pushed)


if __name__ == "__main__":
    main()
