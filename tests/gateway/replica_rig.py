"""Scripted engines in processes of their own, whose logs show what each of them got."""

import asyncio
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import aiohttp

from tests.fakes import replica_process
from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, signalled
from tests.gateway.rig import eventually


@dataclass(frozen=True)
class Begun:
    """A request that began at an engine at ``at`` (epoch seconds), and the read that its prompt names."""

    at: float
    read: str


@dataclass
class EngineProcess:
    """One engine, which may not have started yet."""

    log: Path
    slots: int
    seconds: float
    port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def begun(self) -> list[Begun]:
        """Every request that it got, in order."""
        return [Begun(float(at), read) for sign, at, read in self._lines("+") if sign]

    @property
    def unfinished(self) -> int:
        """The requests that it began and did not end."""
        return len(self._lines("+")) - len(self._lines("-"))

    async def start(self) -> None:
        """Start it and wait until it answers."""
        script = str(Path(replica_process.__file__))
        arguments = ("127.0.0.1", str(self.port), str(self.log), str(self.slots), str(self.seconds))
        self.process = await asyncio.create_subprocess_exec(sys.executable, script, *arguments, env=clean_environment())
        await eventually(self._answers)

    def drain(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR1)

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            await signalled(self.process, signal.SIGKILL)

    async def _answers(self) -> bool:
        try:
            async with aiohttp.ClientSession() as http, http.get(f"{self.url}/models") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    def _lines(self, sign: str) -> list[list[str]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.split() for line in lines if line.startswith(sign)]


@asynccontextmanager
async def engine_processes(
    folder: Path, count: int, *, running: int, slots: int = 1000, seconds: float = 0.2
) -> AsyncGenerator[list[EngineProcess]]:
    """So many engines, the first ``running`` of which have started."""
    engines = [EngineProcess(folder / f"engine-{number}.log", slots, seconds) for number in range(count)]
    try:
        for engine in engines[:running]:
            await engine.start()
        yield engines
    finally:
        for engine in engines:
            await engine.kill()


def kept_places(engines: Sequence[EngineProcess]) -> tuple[int, int]:
    """The chunks of all reads whose chunk before was read by the same engine, and all that have one before them."""
    places: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for number, engine in enumerate(engines):
        for begun in engine.begun:
            if begun.read != "-":
                places[begun.read].append((begun.at, number))
    ways = [[place for _, place in sorted(way)] for way in places.values()]
    steps = [before == after for way in ways for before, after in pairwise(way)]
    return sum(steps), len(steps)
