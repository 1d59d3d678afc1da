"""Runs several processes of one program on one port, and keeps them running.

The parent opens the sockets and serves nothing itself. Each process has a socket of its own on the port, over which the
kernel spreads the connections: of a socket that all share, the process that wakes first takes nearly all. The socket of
a process that dies is closed at once, so that new connections go to the others, and the process is replaced. One that
dies before it has started ends the parent with the same status: its settings are wrong. SIGTERM and SIGINT reach every
process. If the parent is killed, its processes stop.

On SIGHUP each process in turn hands its socket over to a new one, which is ready by then; so new code and new files are
taken up without a failed request. If a new one does not become ready, the old ones stay.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Final

from memloop_service.children import send_signal
from memloop_service.listening import listener
from memloop_service.logs import configure_logging
from memloop_service.settings import ServiceSettings
from memloop_service.siblings import VARIABLE, Sibling

MOST_PROCESSES: Final = 64
_READY_S: Final = 600.0
_LOOK_S: Final = 0.1
_LOG: Final = logging.getLogger(__name__)


def is_parent_of(module: str, settings: ServiceSettings, count: int) -> bool:
    """Run so many processes of the module until a signal, and return True then; False if this is to be the process.

    Exits with the status of one that could not start.
    """
    if count == 1 or Sibling.here() is not None:
        return False
    _run(module, settings, count)
    return True


def part_of(limit: int, processes: int) -> int:
    """Return each process's part of a limit that all share."""
    return -(-limit // processes)


def _run(module: str, settings: ServiceSettings, count: int) -> None:
    configure_logging(module, settings.log_level)
    with tempfile.TemporaryDirectory(prefix="memloop-") as folder, ExitStack() as opened:
        listener(settings, settings.port).close()  # another server's port is refused: several could share it
        metrics = opened.enter_context(listener(settings, settings.metrics_port)) if settings.metrics_port else None
        life, held = os.pipe()
        opened.callback(os.close, life)
        opened.callback(os.close, held)
        descriptor = metrics.fileno() if metrics is not None else None
        siblings = [Sibling(number, -1, descriptor, life, folder) for number in range(count)]
        parent = _Parent(module, siblings, partial(listener, settings, settings.port, one_of_several=True))
        status = asyncio.run(parent.run())
    if status:
        raise SystemExit(status)


class _Parent:
    def __init__(self, module: str, siblings: Sequence[Sibling], listen: Callable[[], socket.socket]) -> None:
        self._running = _Running(module)
        self._places = [_Place(sibling, self._running, listen, apart=len(siblings)) for sibling in siblings]
        self._asked = asyncio.Event()

    async def run(self) -> int:
        """Return the highest exit status once all have ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._asked.set)
        tasks = [asyncio.create_task(place.kept()) for place in self._places]
        rolling = asyncio.create_task(self._roll_when_asked())
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not self._running.stopping:
            self._stop()
        rolling.cancel()
        await asyncio.wait({rolling})
        return max(await asyncio.gather(*tasks))

    def _stop(self) -> None:
        """Stop all. Their sockets are theirs alone then: one that a process closes takes no connection any more."""
        self._running.stop()
        for place in self._places:
            place.close()

    async def _roll_when_asked(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            await self._roll()

    async def _roll(self) -> None:
        for place in self._places:
            if not await place.renewed():
                _LOG.error("a new process did not become ready; the others are not replaced")
                return
        _LOG.info("all processes are new")


class _Running:
    """All processes that run, and whether they are to stop."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._processes: set[asyncio.subprocess.Process] = set()
        self.stopping = False

    def stop(self) -> None:
        """Stop them; a second signal reaches them too, and hurries them."""
        self.stopping = True
        for process in self._processes:
            send_signal(process, signal.SIGTERM)

    async def begin(self, sibling: Sibling) -> asyncio.subprocess.Process:
        """Start a process."""
        for path in (sibling.started, sibling.ready):
            path.unlink(missing_ok=True)
        environment = {**os.environ, VARIABLE: json.dumps(asdict(sibling))}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._module, env=environment, pass_fds=sibling.descriptors
        )
        self._processes.add(process)
        if self.stopping:
            send_signal(process, signal.SIGTERM)
        return process

    async def ended(self, process: asyncio.subprocess.Process) -> int:
        """Wait for its end; its status."""
        status = await process.wait()
        self._processes.discard(process)
        return status


class _Place:
    """The place of one process. ``apart`` from its number is that of a successor, and back."""

    def __init__(self, sibling: Sibling, running: _Running, listen: Callable[[], socket.socket], *, apart: int) -> None:
        self._listen = listen
        self._socket = listen()
        self._sibling = replace(sibling, listen=self._socket.fileno())
        self._running = running
        self._apart = apart
        self._process: asyncio.subprocess.Process | None = None
        self._successor: asyncio.subprocess.Process | None = None

    async def kept(self) -> int:
        """Run the process, and a new one when it dies; return the status of the last."""
        self._process = await self._running.begin(self._sibling)
        while True:
            status = await self._running.ended(self._process)
            if self._successor is not None:
                self._process, self._successor = self._successor, None
                continue
            if self._running.stopping:
                return 0 if status == -signal.SIGTERM else abs(status)  # uvicorn ends by the signal that it handled
            if not self._sibling.started.exists():
                return abs(status) or 1
            _LOG.error("process %d ended with status %d; a new one starts", self._sibling.number, status)
            self._open_anew()
            self._process = await self._running.begin(self._sibling)

    def close(self) -> None:
        """Close the place's socket in this process."""
        self._socket.close()

    def _open_anew(self) -> None:
        """Close the socket that nobody accepts from any more, and open another."""
        self._socket.close()
        self._socket = self._listen()
        self._sibling = replace(self._sibling, listen=self._socket.fileno())

    async def renewed(self) -> bool:
        """Replace the process by a new one. False, and the old one stays, when that one does not become ready."""
        if self._running.stopping:
            return False
        number = self._sibling.number
        fresh = replace(self._sibling, number=number + (self._apart if number < self._apart else -self._apart))
        successor = await self._running.begin(fresh)
        try:
            ready = await _is_ready(fresh, successor)
        except BaseException:
            await self._away_with(successor)
            raise
        before = self._process
        if not ready or before is None:
            await self._away_with(successor)
            return False
        self._sibling, self._successor = fresh, successor
        send_signal(before, signal.SIGHUP)
        await before.wait()
        return True

    async def _away_with(self, process: asyncio.subprocess.Process) -> None:
        send_signal(process, signal.SIGTERM)
        await self._running.ended(process)


async def _is_ready(sibling: Sibling, process: asyncio.subprocess.Process) -> bool:
    """Wait until the process is ready; False when it ends before, or is late."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_READY_S):
            while process.returncode is None:
                if sibling.ready.exists():
                    return True
                await asyncio.sleep(_LOOK_S)
    return False
