"""A process of ours under test, on a port of its own: ``gateway.main``, ``gateway.worker``."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, signalled
from tests.gateway.rig import eventually

_START_S = 90.0


@dataclass
class ServiceProcess:
    """A running process; its output is in ``log``."""

    module: str
    port: int
    log: Path
    environment: Mapping[str, str]
    process: asyncio.subprocess.Process

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'https' if 'MEMLOOP_TLS_CERT' in self.environment else 'http'}://127.0.0.1:{self.port}"

    @property
    def health_url(self) -> str:
        """Where it shows its health without TLS: on the port of its metrics, if it has one."""
        return f"http://127.0.0.1:{self.environment.get('MEMLOOP_METRICS_PORT', self.port)}"

    @classmethod
    async def start(
        cls,
        module: str,
        folder: Path,
        environment: Mapping[str, str],
        *,
        port: int | None = None,
        within: Sequence[str] = (),
        start_s: float = _START_S,
    ) -> "ServiceProcess":
        """A process once it is ready. Raises AssertionError with its last words when it is not in time.

        ``within`` is a command that ends by executing its arguments.
        """
        port = port or free_port()
        log = folder / f"{module}.{port}.log"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *within,
                sys.executable,
                "-m",
                module,
                env=clean_environment(MEMLOOP_PORT=str(port), **environment),
                stdout=output,
                stderr=output,
            )
        started = cls(module, port, log, environment, process)
        try:
            await eventually(started.is_ready, timeout_s=start_s)
        except BaseException:
            await started.kill()
            raise
        return started

    async def is_ready(self) -> bool:
        """Whether ``/readyz`` says so. Raises AssertionError when the process is over."""
        assert self.process.returncode is None, self.log.read_text()[-2000:]
        with suppress(aiohttp.ClientError):
            async with aiohttp.ClientSession() as http, http.get(f"{self.health_url}/readyz") as response:
                return response.status == 200
        return False

    async def stop(self) -> int:
        """SIGTERM; the exit code once it is over."""
        return await signalled(self.process, signal.SIGTERM)

    async def kill(self) -> None:
        """``kill -9``."""
        await signalled(self.process, signal.SIGKILL)


@asynccontextmanager
async def started(
    module: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    within: Sequence[str] = (),
    start_s: float = _START_S,
) -> AsyncGenerator[ServiceProcess]:
    """A process once it is ready; a SIGTERM ends it."""
    process = await ServiceProcess.start(module, folder, environment, within=within, start_s=start_s)
    try:
        yield process
    finally:
        await process.stop()
