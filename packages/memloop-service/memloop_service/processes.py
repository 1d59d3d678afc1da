"""Runs several processes of one program on one port, and keeps them running.

The parent opens the sockets and serves nothing itself: the kernel gives each connection to a process that accepts. A
process that dies after its start is replaced. One that dies before ends the parent with the same status: its settings
are wrong. SIGTERM and SIGINT reach every process. If the parent is killed, its processes stop.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from memloop_service.listening import listener
from memloop_service.logs import configure_logging
from memloop_service.settings import ServiceSettings

_VARIABLE: Final = "MEMLOOP_SIBLING"
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sibling:
    """What one of the processes gets from its parent: its number, descriptors, and the folder of all.

    ``life`` is the end of a pipe that closes with the parent. ``metrics`` is None without a port of its own.
    """

    number: int
    listen: int
    metrics: int | None
    life: int
    folder: str

    @classmethod
    def here(cls) -> Self | None:
        """Return what this process got; None if it has no parent of this kind."""
        given = os.environ.get(_VARIABLE)
        return cls(**json.loads(given)) if given else None

    @property
    def started(self) -> Path:
        """The socket that exists once the process has started."""
        return Path(self.folder, f"{self.number}.sock")

    def others(self) -> Sequence[Path]:
        """Return the sockets of the other processes that have started."""
        return [path for path in Path(self.folder).glob("*.sock") if path != self.started]

    def ends_with_its_parent(self) -> None:
        """Send this process a SIGTERM when the parent is gone."""
        loop = asyncio.get_running_loop()

        def gone() -> None:
            loop.remove_reader(self.life)
            os.kill(os.getpid(), signal.SIGTERM)

        loop.add_reader(self.life, gone)


def inherited(settings: ServiceSettings, port: int) -> socket.socket:
    """Return the socket for a port: the parent's, else a new one. Exits when it cannot bind."""
    sibling = Sibling.here()
    if sibling is None:
        return listener(settings, port)
    descriptor = sibling.metrics if port == settings.metrics_port else sibling.listen
    return socket.socket(fileno=descriptor)


def run_processes(module: str, settings: ServiceSettings, count: int) -> None:
    """Run ``python -m module`` so many times until a signal. Exits with the status of one that could not start."""
    configure_logging(module, settings.log_level)
    with tempfile.TemporaryDirectory(prefix="memloop-") as folder, ExitStack() as opened:
        main = opened.enter_context(listener(settings, settings.port))
        metrics = opened.enter_context(listener(settings, settings.metrics_port)) if settings.metrics_port else None
        life, held = os.pipe()
        opened.callback(os.close, life)
        opened.callback(os.close, held)
        descriptor = metrics.fileno() if metrics is not None else None
        siblings = [Sibling(number, main.fileno(), descriptor, life, folder) for number in range(count)]
        status = asyncio.run(_Parent(module, siblings).run())
    if status:
        raise SystemExit(status)


class _Parent:
    def __init__(self, module: str, siblings: Sequence[Sibling]) -> None:
        self._module = module
        self._siblings = siblings
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Return the highest exit status once all have ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        tasks = [asyncio.create_task(self._kept(sibling)) for sibling in self._siblings]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self._stop()
        return max(await asyncio.gather(*tasks))

    def _stop(self) -> None:
        """Stop them; a second signal reaches them too, and hurries them."""
        self._stopping.set()
        for process in self._running.values():
            with suppress(ProcessLookupError):
                process.terminate()

    async def _kept(self, sibling: Sibling) -> int:
        """Run one process, and a new one when it dies; return the status of the last."""
        while True:
            sibling.started.unlink(missing_ok=True)
            process = await self._new(sibling)
            self._running[sibling.number] = process
            if self._stopping.is_set():
                self._stop()
            status = await process.wait()
            del self._running[sibling.number]
            if self._stopping.is_set():
                return 0 if status == -signal.SIGTERM else abs(status)  # uvicorn ends by the signal that it handled
            if not sibling.started.exists():
                return abs(status) or 1
            _LOG.error("process %d ended with status %d; a new one starts", sibling.number, status)

    async def _new(self, sibling: Sibling) -> asyncio.subprocess.Process:
        descriptors = [each for each in (sibling.listen, sibling.metrics, sibling.life) if each is not None]
        environment = {**os.environ, _VARIABLE: json.dumps(asdict(sibling))}
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._module, env=environment, pass_fds=descriptors
        )
