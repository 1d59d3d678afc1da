"""Asks the registries for the digests of all images and prints them, so that a tag that moves changes nothing.

    python -m deploy.images.pinning --registry registry.example.com/ > pinned.yaml
    python -m deploy.images.pinning --bases
    python -m deploy.images.pinning --write

The first prints values for ``helm upgrade -f pinned.yaml``, the second the base images of ``deploy/docker``, each as
``NAME=image@digest`` for ``--build-arg``. Run it after you have pushed the images. The third writes the digests of
other projects' images into Dockerfiles, Compose file and the chart's values, beside their tags. An image that is not
in its registry is named and left out (status 1); ``--only NAME`` asks for some. Logins are those of ``docker login``
in ``~/.docker/config.json``.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.images.registry import Image, Registries, RegistryError
from deploy.images.writing import images_of_others, write_digests

_ROOT: Final = Path(__file__).parents[2]
_CHART: Final = _ROOT / "deploy/helm/memloop"
_DOCKERFILES: Final = _ROOT / "deploy/docker"
_LOGINS: Final = Path.home() / ".docker/config.json"
_BASE: Final = re.compile(r"^ARG (\w+_IMAGE)=([^\s@]+)(?:@\S+)?$", re.MULTILINE)


def main(arguments: Sequence[str] | None = None, *, logins: Path = _LOGINS, root: Path = _ROOT) -> int:
    """Print or write the digests; status 0, 1 if some are missing."""
    parser = argparse.ArgumentParser(prog="python -m deploy.images.pinning", description=__doc__)
    parser.add_argument("--registry", default="", help="the registry of our own images, with its slash")
    parser.add_argument("--tag", default="", help="their tag; default: the chart's appVersion")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one of the images; again for more")
    parser.add_argument("--bases", action="store_true", help="the base images of deploy/docker")
    parser.add_argument(
        "--write", action="store_true", help="write the digests of other projects' images into the files"
    )
    asked = parser.parse_args(arguments)
    if asked.write:
        images = images_of_others(root)
    else:
        images = base_images() if asked.bases else chart_images(asked.registry, asked.tag)
    wanted = {name: image for name, image in images.items() if not asked.only or name in asked.only}
    digests = dict(_resolved(wanted, Registries.of_docker(logins)))
    if asked.write:
        for path in write_digests(root, digests):
            print(path.relative_to(root))
    elif asked.bases:
        for name, digest in digests.items():
            print(f"{name}={wanted[name]}@{digest}")
    else:
        print(yaml.safe_dump({"images": {name: {"digest": digest} for name, digest in digests.items()}}), end="")
    return 0 if len(digests) == len(wanted) else 1


def chart_images(registry: str, tag: str) -> dict[str, Image]:
    """Return the images of the chart, by their names under ``images``, as its template puts them together."""
    values: dict[str, Any] = yaml.safe_load((_CHART / "values.yaml").read_text())
    version = str(yaml.safe_load((_CHART / "Chart.yaml").read_text())["appVersion"])
    ours = registry or values["image"]["registry"]
    return {
        name: Image.parse(f"{image['registry'] or ours}{image['repository']}:{image['tag'] or tag or version}")
        for name, image in values["images"].items()
    }


def base_images() -> dict[str, Image]:
    """Return the images that the Dockerfiles build on, by the names of their build arguments; ours are left out."""
    texts = [path.read_text() for path in sorted(_DOCKERFILES.glob("*.Dockerfile"))]
    found = {name: image for text in texts for name, image in _BASE.findall(text)}
    return {name: Image.parse(image) for name, image in found.items() if not image.startswith("localhost/")}


def _resolved(images: Mapping[str, Image], registries: Registries) -> Iterator[tuple[str, str]]:
    for name, image in images.items():
        try:
            yield name, registries.digest(image)
        except RegistryError as error:
            print(f"pinning: {name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
