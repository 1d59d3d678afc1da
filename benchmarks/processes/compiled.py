"""An engine and clients of compiled programs, nginx and wrk, which leave two cores to the gateway's two processes.

Our own engine and clients, in Python, take more than half of two cores, so that two processes cannot serve more there.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import orjson

from benchmarks.gateway.workload import API_KEY, Level, requests
from benchmarks.mock_engine import free_port, wait_for
from benchmarks.processes.clients import NICER, Served

_RATE: Final = re.compile(r"Requests/sec:\s+([\d.]+)")
_MEDIAN: Final = re.compile(r"50%\s+([\d.]+)(us|ms|s)\b")
_FAILURES: Final = re.compile(r"Non-2xx or 3xx responses: (\d+)|Socket errors: .*")
_MS: Final = {"us": 0.001, "ms": 1.0, "s": 1000.0}
_MODELS: Final = {"object": "list", "data": [{"id": "mock", "object": "model"}]}
_ANSWER: Final = {
    "id": "mock",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "mock",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "The harbour master."}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 40, "completion_tokens": 4, "total_tokens": 44},
}
_NGINX: Final = """\
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder};
  keepalive_requests 100000000;
  default_type application/json;
  server {{
    listen 127.0.0.1:{port};
    location = /v1/models {{ return 200 '{models}'; }}
    location = /v1/chat/completions {{ return 200 '{answer}'; }}
  }}
}}
"""
_WRK: Final = """\
wrk.method = "POST"
wrk.body = {body}
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {key}"
"""


def is_installed() -> bool:
    """Return whether both programs are on the PATH (Debian: nginx-light, wrk)."""
    return all(shutil.which(name) for name in ("nginx", "wrk"))


@contextmanager
def nginx_engine() -> Generator[str]:
    """Run nginx as an engine that gives every chat the same answer, and yield its base URL."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="memloop-bench-") as folder:
        models, answer = (orjson.dumps(each).decode() for each in (_MODELS, _ANSWER))
        config = Path(folder, "nginx.conf")
        config.write_text(_NGINX.format(folder=folder, port=port, models=models, answer=answer), "utf-8")
        with subprocess.Popen(("nginx", "-p", folder, "-c", str(config)), stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(port)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                process.terminate()


def chats_by_wrk(port: int, *, seconds: float, concurrency: int) -> Served:
    """Send the same chat over so many connections for so long. Raises CalledProcessError, ValueError."""
    [request] = requests(Level("json", 1, 1), memory=False)
    body = request.partition(b"\r\n\r\n")[2].decode()
    with tempfile.NamedTemporaryFile("w", suffix=".lua", encoding="utf-8") as script:
        script.write(_WRK.format(body=orjson.dumps(body).decode(), key=API_KEY))
        script.flush()
        told = ("nice", "-n", str(NICER), "wrk", "--threads", "1", "--connections", str(concurrency))
        more = ("--duration", f"{seconds:.0f}s", "--latency", "--script", script.name)
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        printed = subprocess.run((*told, *more, url), capture_output=True, text=True, check=True).stdout
    return read(printed)


def read(printed: str) -> Served:
    """Return what wrk has printed. Raises ValueError for anything else."""
    rate, median, failed = (found.search(printed) for found in (_RATE, _MEDIAN, _FAILURES))
    if rate is None or median is None:
        raise ValueError(f"wrk printed no rate: {printed}")
    failures = 0 if failed is None else int(failed[1] or 1)
    return float(rate[1]), float(median[1]) * _MS[median[2]], failures
