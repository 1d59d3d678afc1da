"""An exported checkpoint on real vLLM, as inference launches it."""

import os
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from memloop.wire.errors import DependencyError
from memloop_clients.engine import EngineClient
from tests.fakes.ports import free_port
from tests.fakes.processes import end

SERVING = Path(".venv/bin/python")
"""The workspace's environment: the engine lives there."""
SERVE_TIMEOUT_S = 600


@contextmanager
def serving(checkpoint: Path) -> Generator[str]:
    """The address of an engine that serves the checkpoint, once it is up (:func:`until_up`)."""
    assert SERVING.exists(), "`make setup` first: the engine lives in the workspace's environment"
    port, engine_port = free_port(), free_port()
    environment = {
        "MEMLOOP_MODEL": "memloop-tiny",
        "MEMLOOP_MODEL_PATH": str(checkpoint),
        "MEMLOOP_PORT": str(port),
        "MEMLOOP_ENGINE_PORT": str(engine_port),
        "VLLM_NO_USAGE_STATS": "1",
    }
    launcher = subprocess.Popen([SERVING, "-m", "inference.main"], env={**os.environ, **environment})
    try:
        yield f"http://127.0.0.1:{engine_port}/v1"
    finally:
        end(launcher)


async def until_up(engine: EngineClient) -> None:
    """Wait for the engine."""
    deadline = time.monotonic() + SERVE_TIMEOUT_S
    while True:
        try:
            return await engine.check()
        except DependencyError:
            assert time.monotonic() < deadline
            time.sleep(1)  # noqa: ASYNC251 -- nothing else runs here
