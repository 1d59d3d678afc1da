"""Worker processes for tests that kill them: forks of a process that has imported the worker, so each starts at once.

That ``python -m gateway.worker`` itself starts is for tests of whole processes (``tests.fakes.service_process``).
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

from gateway.worker import main
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S
from tests.gateway.dead_workers import been_silent, names_of
from tests.gateway.rig import Rig


@dataclass(frozen=True)
class WorkerProcess:
    """A worker with a pid of its own."""

    process: BaseProcess

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    async def signalled(self, number: signal.Signals) -> None:
        """Send the signal and wait for the process's end; one that has ended already is left in peace."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
        await asyncio.to_thread(self.process.join, PATIENCE_S)
        assert not self.process.is_alive()


@asynccontextmanager
async def worker_process(it: Rig) -> AsyncGenerator[WorkerProcess]:
    """A worker as its own process; killed at the end if it still runs, and others take over.

    Whoever is cancelled while it starts leaves none behind: it would take the jobs of later tests.
    """
    starting = asyncio.create_task(asyncio.to_thread(_forked, _environment(it)))
    try:
        yield WorkerProcess(await asyncio.shield(starting))
    finally:
        worker = WorkerProcess(await starting)
        await worker.signalled(signal.SIGKILL)
        await been_silent(it.work.state, names_of(worker.pid))


def _environment(it: Rig) -> dict[str, str]:
    fields = it.settings.model_dump(exclude_defaults=True, exclude={"redis_url", "webhook_secret"}, mode="json")
    environment = {f"MEMLOOP_{name.upper()}": str(value) for name, value in fields.items()}
    if it.settings.webhook_secret is not None:
        environment["MEMLOOP_WEBHOOK_SECRET"] = it.settings.webhook_secret.get_secret_value()
    return environment | {
        "PATH": os.environ["PATH"],
        "MEMLOOP_REDIS_URL": it.settings.redis_url.get_secret_value(),
        "MEMLOOP_PORT": str(free_port()),
    }


def _forked(environment: Mapping[str, str]) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_work, args=(dict(environment),))
    process.start()
    return process


def _work(environment: Mapping[str, str]) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ.clear()
    os.environ.update(environment)
    main()
