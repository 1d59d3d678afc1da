"""The processes that a benchmark starts end with it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.processes import is_running, wait_for

SERVERS = """
import asyncio, pathlib, sys
import uvloop
from benchmarks.gateway import servers

with servers.redis_server(pathlib.Path(sys.argv[1])) as redis:
    print(redis.pid, flush=True)
    uvloop.run(asyncio.sleep(600))
"""
STARTED = """
import sys, time
from benchmarks.started import started

with started("sleep", ["sleep", "600"], {}) as process:
    print(process.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("benchmark", [SERVERS, STARTED], ids=["servers", "started"])
def test_a_benchmark_ended_by_a_signal_stops_its_processes(tmp_path: Path, benchmark: str, how: signal.Signals) -> None:
    command = (sys.executable, "-c", benchmark, str(tmp_path))
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        assert running.stdout is not None
        server = int(running.stdout.readline())
        assert is_running(server)
        running.send_signal(how)
        running.wait()
    wait_for(lambda: not is_running(server), "the end of the server")
