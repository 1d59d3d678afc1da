"""One of several processes on one port: what it gets from their parent, and what it gives back."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from memloop_service.health import Check, look
from memloop_service.listening import listener
from memloop_service.settings import ServiceSettings

VARIABLE: Final = "MEMLOOP_SIBLING"
_LOOK_S: Final = 0.2


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
        given = os.environ.get(VARIABLE)
        return cls(**json.loads(given)) if given else None

    @property
    def started(self) -> Path:
        """The socket that exists once the process has started."""
        return Path(self.folder, f"{self.number}.sock")

    @property
    def ready(self) -> Path:
        """The file that exists once the process was ready."""
        return Path(self.folder, f"{self.number}.ready")

    @property
    def descriptors(self) -> Sequence[int]:
        """The descriptors that it inherits."""
        return [each for each in (self.listen, self.metrics, self.life) if each is not None]

    def others(self) -> Sequence[Path]:
        """Return the sockets of the other processes that have started."""
        return [path for path in Path(self.folder).glob("*.sock") if path != self.started]

    def follows_its_parent(self, hand_over: Callable[[], None]) -> None:
        """Hand over on a SIGHUP; send this process a SIGTERM when the parent is gone."""
        loop = asyncio.get_running_loop()

        def gone() -> None:
            loop.remove_reader(self.life)
            os.kill(os.getpid(), signal.SIGTERM)

        loop.add_reader(self.life, gone)
        loop.add_signal_handler(signal.SIGHUP, hand_over)


async def announced_when_ready(checks: Mapping[str, Check], optional: Collection[str]) -> None:
    """Show the parent, if there is one, that the process is ready."""
    sibling = Sibling.here()
    if sibling is None:
        return
    while (await look(checks, optional))[1]:  # noqa: ASYNC110 - dependencies do not signal
        await asyncio.sleep(_LOOK_S)
    sibling.ready.touch()


def inherited(settings: ServiceSettings, port: int) -> socket.socket:
    """Return the socket for a port: the parent's, else a new one. Exits when it cannot bind."""
    sibling = Sibling.here()
    if sibling is None:
        return listener(settings, port)
    descriptor = sibling.metrics if port == settings.metrics_port else sibling.listen
    return socket.socket(fileno=descriptor)
