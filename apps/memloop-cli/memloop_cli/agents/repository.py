"""Names the repository in which an agent works, alike on every machine that has a clone of it."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

_ADDRESS = re.compile(r"^(?:[a-z+]+://)?(?:[^@/]+@)?(?P<host>[^:/]+)(?::\d+)?[:/](?P<path>.+?)(?:\.git)?/?$")
_LONGEST = 200


def repository_id(folder: Path) -> str:
    """Return an id of the folder's repository: the address of ``origin`` without user and scheme, else the path."""
    origin = _git(folder, "config", "--get", "remote.origin.url")
    found = _ADDRESS.match(origin) if origin else None
    if found is not None:
        return _short(f"{found['host'].lower()}/{found['path']}")
    root = Path(_git(folder, "rev-parse", "--show-toplevel") or folder).resolve()
    return _short(f"{root.name}-{hashlib.sha256(str(root).encode()).hexdigest()[:12]}")


def _short(name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{digest}"


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - git reads its own configuration
            [shutil.which("git") or "git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
