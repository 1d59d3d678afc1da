"""Writes digests beside the tags of other projects' images: Dockerfiles, Compose file and the chart's values."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from deploy.images.registry import Image

_DIGEST: Final = r"(?:@sha256:[0-9a-f]{64})?"
_NAMED: Final = (
    re.compile(rf"^(?P<before>ARG \w+_IMAGE=)(?P<name>[^\s@]+){_DIGEST}$", re.MULTILINE),
    re.compile(rf"^(?P<before> +image: )(?P<name>[^\s@$]+){_DIGEST}$", re.MULTILINE),
)
"""A base image of a Dockerfile, and an image of the Compose file; ours have a variable in them."""
_VALUE: Final = re.compile(
    r'^(?P<before>  \w+: \{ registry: (?P<registry>[^\s",]+), repository: (?P<repository>[^\s,]+), '
    r'tag: (?P<tag>[^\s,]+), digest: )"[^"]*"',
    re.MULTILINE,
)
"""An image of the chart's values that comes from a registry which is not the operator's own."""


def pinned_files(root: Path) -> list[Path]:
    """Return the files that name images of other projects."""
    return [
        *sorted((root / "deploy/docker").glob("*.Dockerfile")),
        root / "docker-compose.yml",
        root / "deploy/helm/memloop/values.yaml",
    ]


def images_of_others(root: Path) -> dict[str, Image]:
    """Return the images that the files name, by their names there without a digest."""
    texts = [path.read_text() for path in pinned_files(root)]
    return {name: Image.parse(name) for text in texts for name in _names(text)}


def write_digests(root: Path, digests: Mapping[str, str]) -> list[Path]:
    """Write ``name:tag@digest``, and ``digest:`` in the chart's values, for each known name. Returns changed files."""
    changed: list[Path] = []
    for path in pinned_files(root):
        before = after = path.read_text()
        for pattern in _NAMED:
            after = pattern.sub(lambda found: _with_digest(found, digests), after)
        after = _VALUE.sub(lambda found: _with_value(found, digests), after)
        if after != before:
            path.write_text(after)
            changed.append(path)
    return changed


def _names(text: str) -> Iterator[str]:
    for pattern in _NAMED:
        yield from (found["name"] for found in pattern.finditer(text) if not found["name"].startswith("localhost/"))
    yield from (_name_of(found) for found in _VALUE.finditer(text))


def _name_of(found: re.Match[str]) -> str:
    return f"{found['registry']}{found['repository']}:{found['tag']}"


def _with_digest(found: re.Match[str], digests: Mapping[str, str]) -> str:
    name = found["name"]
    return f"{found['before']}{name}@{digests[name]}" if name in digests else found[0]


def _with_value(found: re.Match[str], digests: Mapping[str, str]) -> str:
    digest = digests.get(_name_of(found))
    return found[0] if digest is None else f'{found["before"]}"{digest}"'
