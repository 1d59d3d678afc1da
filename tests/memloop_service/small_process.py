"""The small service as a process, served as every process of ours is."""

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx
import psutil

from memloop_service import ServiceSettings, create_app, run
from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, end
from tests.memloop_service.small_service import routes

_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Small:
    """The running process; ``log`` is the file of its output."""

    port: int
    metrics_port: int
    process: "subprocess.Popen[bytes]"
    log: Path
    unix_socket: str | None = None

    @property
    def memory_mb(self) -> float:
        """Its resident memory."""
        return psutil.Process(self.process.pid).memory_info().rss / 1e6

    def get(self, path: str, port: int, **headers: str) -> httpx.Response:
        """Ask on a connection of its own."""
        with httpx.Client(transport=httpx.HTTPTransport(uds=self.unix_socket)) as client:
            return client.get(f"http://127.0.0.1:{port}{path}", headers=headers, timeout=_PATIENCE_S)

    def is_alive(self) -> bool:
        """Whether it answers another client."""
        try:
            return self.get("/livez", self.port).status_code == 200
        except httpx.TransportError:
            return False

    def settled(self, condition: Callable[[], bool]) -> bool:
        """Wait until the condition holds."""
        late = time.monotonic() + _PATIENCE_S
        while time.monotonic() < late and self.process.poll() is None:
            if condition():
                return True
            time.sleep(0.02)
        return False


@contextmanager
def small_process(**settings: object) -> Generator[Small]:
    """Start one with these settings."""
    port, metrics_port = free_port(), free_port()
    given = {"port": port, "metrics_port": metrics_port, **settings}
    unix_socket = str(given["unix_socket"]) if "unix_socket" in given else None
    environment = clean_environment(**{f"MEMLOOP_{name.upper()}": str(value) for name, value in given.items()})
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("wb") as output:
            command = [sys.executable, "-m", __spec__.name]
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        small = Small(port, metrics_port, process, log, unix_socket)
        try:
            assert small.settled(small.is_alive), log.read_text()
            yield small
        finally:
            end(process)


def main() -> None:
    """Serve until a signal."""
    settings = ServiceSettings()
    run(create_app("test", settings=settings, routers=[routes()]), settings)


if __name__ == "__main__":
    main()
