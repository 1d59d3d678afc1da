"""A program under test that runs several processes on one port: its parent, its children, its merged metrics."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.fakes.service_process import ServiceProcess, started
from tests.gateway.rig import eventually

START_S = 120.0


@dataclass
class Siblings:
    """The processes of one program."""

    program: ServiceProcess
    count: int

    @property
    def pids(self) -> list[int]:
        """The children of the parent, the oldest first."""
        pid = self.program.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    async def get(self, path: str) -> tuple[int, str]:
        """An answer over a connection of its own."""
        async with aiohttp.ClientSession() as http, http.get(self.program.url + path) as answer:
            return answer.status, await answer.text()

    async def samples(self, name: str) -> list[str]:
        """The lines of the metrics that begin so."""
        return [line for line in (await self.get("/metrics"))[1].splitlines() if line.startswith(name)]

    async def all_started(self) -> None:
        """Wait until each process gives its metrics."""
        await eventually(self._all_started, timeout_s=START_S)

    async def all_new(self, before: list[int]) -> None:
        """Wait until no process of before runs, and as many others do."""
        await eventually(lambda: len(self.pids) == self.count and not set(before) & set(self.pids), timeout_s=START_S)
        await self.all_started()

    def hang_up(self) -> None:
        """Send the parent a SIGHUP."""
        self.program.process.send_signal(signal.SIGHUP)

    async def _all_started(self) -> bool:
        with suppress(aiohttp.ClientError):
            return len(await self.samples("memloop_build_info{")) == self.count
        return False


@asynccontextmanager
async def siblings(
    module: str, folder: Path, environment: Mapping[str, str], *, count: int = 2
) -> AsyncGenerator[Siblings]:
    """A program with so many processes, all of which have started."""
    async with started(module, folder, {**environment, "MEMLOOP_PROCESSES": str(count)}) as program:
        processes = Siblings(program, count)
        await processes.all_started()
        yield processes


@dataclass
class Steady:
    """Clients that ask for one path again and again, each over one kept connection."""

    url: str
    answered: int = 0
    failures: list[str] = field(default_factory=list[str])

    @asynccontextmanager
    async def asking(self, clients: int) -> AsyncGenerator[None]:
        """So many clients meanwhile; each has been answered once at the block's beginning."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(self._client(over))
            try:
                await eventually(lambda: self.answered >= clients)
                yield
            finally:
                over.set()

    async def _client(self, over: asyncio.Event) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as http:
            while not over.is_set():
                try:
                    async with http.get(self.url) as answer:
                        await answer.read()
                    self.answered += 1
                    if answer.status != 200:
                        self.failures.append(f"status {answer.status}")
                except (aiohttp.ClientError, OSError) as error:
                    self.failures.append(repr(error))
                await asyncio.sleep(0.005)
