"""The servers that a benchmark starts end with it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.processes import is_running, wait_for

BENCHMARK = """
import asyncio, pathlib, sys
import uvloop
from benchmarks.gateway import servers

with servers.redis_server(pathlib.Path(sys.argv[1])) as redis:
    print(redis.pid, flush=True)
    uvloop.run(asyncio.sleep(600))
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_benchmark_ended_by_a_signal_stops_its_servers(tmp_path: Path, how: signal.Signals) -> None:
    command = (sys.executable, "-c", BENCHMARK, str(tmp_path))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as benchmark:
        assert benchmark.stdout is not None
        server = int(benchmark.stdout.readline())
        assert is_running(server)
        benchmark.send_signal(how)
        benchmark.wait()
    wait_for(lambda: not is_running(server), "the end of the server")
