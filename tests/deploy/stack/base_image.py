"""The Python base image: the official one where it can be had, else a stand-in of the same Debian."""

import functools
import os
import shutil
import zipfile
from pathlib import Path
from typing import Final

from tests.deploy.stack.docker import DockerError, docker, has_image, run

OFFICIAL: Final = "python:3.11-slim-bookworm"
STAND_IN: Final = "memloop-standin/python:3.11-slim-bookworm-1"
_PACKAGES: Final = "ca-certificates,netbase,python3-pip-whl,python3-setuptools-whl,python3.11,tzdata"
_MIRROR: Final = "http://deb.debian.org/debian"
_EMPTIED: Final = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
)
_SITE: Final = "usr/local/lib/python3.11/dist-packages"


def cache_folder() -> Path:
    """Where what takes long to make is kept between runs."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "memloop-deploy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@functools.cache
def can_pull() -> bool:
    """Whether the official image is here or can be pulled."""
    if has_image(OFFICIAL):
        return True
    try:
        docker("pull", OFFICIAL, timeout_s=300)
    except DockerError:
        return False
    return True


def python_image() -> str:
    """The image that our Dockerfiles start from here. Raises DockerError when there is none and none can be made."""
    if can_pull():
        return OFFICIAL
    if not has_image(STAND_IN):
        _import(_tarball())
    return STAND_IN


def _import(tarball: Path) -> None:
    changes = ("ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin LANG=C.UTF-8", 'CMD ["python"]')
    settings = [word for change in changes for word in ("--change", change)]
    docker("import", *settings, tarball, STAND_IN, timeout_s=300)


def _tarball() -> Path:
    """Debian's own bookworm and Python 3.11 as a tarball, made once by debootstrap."""
    kept = cache_folder() / "python-3.11-slim-bookworm-1.tar"
    if kept.exists():
        return kept
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise DockerError(f"{OFFICIAL} cannot be pulled, and a stand-in needs root and debootstrap")
    root = cache_folder() / "root"
    shutil.rmtree(root, ignore_errors=True)
    run(["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(root), _MIRROR], timeout_s=900)
    _shape(root)
    part = kept.with_suffix(".part")
    run(["tar", "--create", "--numeric-owner", "--file", str(part), "--directory", str(root), "."], timeout_s=300)
    part.rename(kept)
    shutil.rmtree(root)
    return kept


def _shape(root: Path) -> None:
    """Lay it out as the official image is: ``python`` and ``pip`` in /usr/local, no caches, no manuals."""
    for name in _EMPTIED:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)
    (root / "usr/lib/python3.11/EXTERNALLY-MANAGED").unlink(missing_ok=True)
    for name in ("python", "python3", "python3.11"):
        (root / "usr/local/bin" / name).symlink_to("/usr/bin/python3.11")
    for wheel in (root / "usr/share/python-wheels").glob("*.whl"):
        if wheel.name.startswith(("pip-", "setuptools-")):
            zipfile.ZipFile(wheel).extractall(root / _SITE)
    pip = root / "usr/local/bin/pip"
    pip.write_text("#!/usr/local/bin/python\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n")
    pip.chmod(0o755)
    suites = "\n".join(f"deb {_MIRROR} {suite} main" for suite in ("bookworm", "bookworm-updates"))
    (root / "etc/apt/sources.list").write_text(suites + "\n")
