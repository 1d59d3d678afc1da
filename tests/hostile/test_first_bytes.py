"""What one connection without a key can do to each process of the real stack: 200 MB of everything, and no end."""

import asyncio
import resource
import socket
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from tests.fakes import engine_process
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S
from tests.fakes.service_process import ServiceProcess, started
from tests.hostile.process_use import peak_bytes, reset_peak
from tests.hostile.stack import hostile_stack
from tests.inference.conftest import write_checkpoint
from tests.memloop_service.test_first_bytes import FLOODS, Flood

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
FLOOD_BYTES: Final = 200_000_000
MOST_MORE_BYTES: Final = 100_000_000
LIVE_P99_S: Final = 0.2
HALF_HEADS: Final = 400
HEAD_S: Final = 10.0
OTHERS_EVERY_S: Final = 0.01
HALF: Final = b"GET /livez HTTP/1.1\r\nHost: local"


@pytest.fixture
async def doors(tmp_path: Path) -> AsyncGenerator[Mapping[str, ServiceProcess]]:
    """Every process of ours that listens, by its name; the launcher over the script of an engine."""
    launcher = {
        "MEMLOOP_MODEL": str(write_checkpoint(tmp_path / "model")),
        "MEMLOOP_PROFILE": "tiny",
        "MEMLOOP_ENGINE": "vllm-cpu",
        "MEMLOOP_SERVE_TOOL_CALL_PARSER": "hermes",
        "MEMLOOP_ENGINE_PORT": str(free_port()),
        "MEMLOOP_SERVE_PYTHON": engine_process.__file__,
        "FAKE_ENGINE": "ready",
        "FAKE_ENGINE_PIDS": str(tmp_path / "pids"),
    }
    async with hostile_stack(tmp_path) as stack, started("inference.main", tmp_path, launcher) as launched:
        yield {**stack.ours, "launcher": launched}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a flood did to a process: bytes of memory more, the others' 99th percentile, and whether it was stopped."""

    more_bytes: int
    p99_s: float
    is_stopped: bool


async def flooded(process: ServiceProcess, flood: Flood) -> Seen:
    """Send the flood from a thread, and ask for ``/livez`` beside it."""
    reset_peak(process.process.pid)
    before = peak_bytes(process.process.pid)
    sending = asyncio.create_task(asyncio.to_thread(_sent, process.port, flood))
    took = list[float]()
    async with aiohttp.ClientSession() as http:
        while not sending.done() or len(took) < 100:
            began = time.perf_counter()
            async with http.get(f"{process.url}/livez") as answer:
                assert answer.status == 200
            took.append(time.perf_counter() - began)
            await asyncio.sleep(OTHERS_EVERY_S)
    return Seen(peak_bytes(process.process.pid) - before, sorted(took)[len(took) * 99 // 100], await sending)


def _sent(port: int, flood: Flood) -> bool:
    """Whether the server stopped it: by its answer, by closing, or by not reading on."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=2.0)) as client:
        try:
            client.sendall(flood.first)
            for _ in range(FLOOD_BYTES // len(flood.more)):
                client.sendall(flood.more)
        except OSError:
            return True
    return False


async def test_one_connection_takes_neither_memory_nor_time(doors: Mapping[str, ServiceProcess]) -> None:
    seen: Mapping[str, Seen] = {
        f"{name}: {what}": await flooded(process, flood)
        for name, process in doors.items()
        for what, flood in FLOODS.items()
    }
    for name, each in seen.items():
        print(f"{name}: {each.more_bytes / 1e6:.0f} MB more, p99 {each.p99_s * 1000:.0f} ms", flush=True)
    assert [name for name, each in seen.items() if not each.is_stopped] == []
    assert [name for name, each in seen.items() if each.more_bytes > MOST_MORE_BYTES] == []
    slow = [name for name, each in seen.items() if each.p99_s > LIVE_P99_S]
    print("slower than the goal:", slow or "none", flush=True)  # a time depends on what else the machine does


@asynccontextmanager
async def connections(port: int, count: int, first: bytes) -> AsyncGenerator[list[asyncio.StreamReader]]:
    """Open so many, each with these bytes."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    try:
        for _, writer in opened:
            with suppress(ConnectionError):
                writer.write(first)
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.close()


async def test_connections_with_half_a_head_are_gone_after_the_time(doors: Mapping[str, ServiceProcess]) -> None:
    for process in doors.values():
        async with connections(process.port, HALF_HEADS, HALF) as readers, asyncio.timeout(PATIENCE_S):
            answers = await asyncio.gather(*(reader.read() for reader in readers))
        assert {answer[:12] for answer in answers} == {b"HTTP/1.1 408"}


async def test_more_connections_than_files_are_refused_logged_and_counted(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard > 4096
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    few_files = ("sh", "-c", 'ulimit -n 1024; exec "$@"', "sh")
    async with started("tests.memloop_service.small_process", tmp_path, {}, within=few_files) as process:
        async with connections(process.port, 1100, HALF) as readers, asyncio.timeout(PATIENCE_S):
            answers = [await reader.read() for reader in readers]
        async with aiohttp.ClientSession() as http, http.get(f"{process.url}/metrics") as answer:
            metrics = await answer.text()
        assert sum(answer.startswith(b"HTTP/1.1 503 ") for answer in answers) >= 1100 - 512
        assert 'http_connections_refused_total{reason="too_many"}' in metrics
        assert "too_many" in process.log.read_text()
